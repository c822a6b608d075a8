// The gaussian pdf as an operation, on the GPU.
#pragma once

#include "kernels/operation/operation_cuda.h"

namespace tilewire::gaussian {

extern const CudaOperation kCuda;

}  // namespace tilewire::gaussian
