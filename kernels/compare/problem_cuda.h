// Comparing as an operation, on the GPU.
#pragma once

#include "kernels/operation/operation_cuda.h"

namespace tilewire::compare {

extern const CudaOperation kCuda;

}  // namespace tilewire::compare
