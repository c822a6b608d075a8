// Transpose on the GPU. The only transpose header that knows CUDA types.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/transpose/transpose.h"

namespace tilewire::transpose {

/// Enqueues the permutation of one band on `stream`; `in` and `out` are device pointers to the whole arrays.
/// Returns the launch's error.
cudaError_t CudaRange(const Plan& plan, const Range& range, const void* in, void* out, cudaStream_t stream);

}  // namespace tilewire::transpose
