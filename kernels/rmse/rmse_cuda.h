// RMSE on the GPU. The only RMSE header that knows CUDA types.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/rmse/rmse.h"

namespace tilewire::rmse {

/// Enqueues the tile sums of `range` on `stream`: a, b and tile_sums are device pointers to the whole arrays.
/// Returns the launch's error. Same bits as HostRange.
cudaError_t CudaRange(const Plan& plan, const Range& range, const void* a, const void* b, double* tile_sums,
                      cudaStream_t stream);

/// Enqueues the combination of all tile sums into `result` (segments doubles). Same bits as HostFinish.
cudaError_t CudaFinish(const Plan& plan, double* tile_sums, double* result, cudaStream_t stream);

}  // namespace tilewire::rmse
