// RMSE on the GPU. The only RMSE header that knows CUDA types.
#pragma once

#include "kernels/array/launch_cuda.h"
#include "kernels/rmse/rmse.h"

namespace tilewire::rmse {

/// Launches the tile sums of `range`: a, b and tile_sums are device pointers to the whole arrays.
/// Returns the launch's error. Same bits as HostRange.
cudaError_t CudaRange(const Plan& plan, const Range& range, const void* a, const void* b, double* tile_sums,
                      const gpu::Launcher& launcher);

/// Launches the combination of all tile sums into `result` (segments doubles). Same bits as HostFinish.
cudaError_t CudaFinish(const Plan& plan, double* tile_sums, double* result, const gpu::Launcher& launcher);

/// For operands that are on the device in full: all of the above in as few launches as possible, one where no
/// segment is longer than a tile. `tile_sums` is scratch of plan.scratch_bytes(). Same bits.
cudaError_t CudaWhole(const Plan& plan, const void* a, const void* b, double* tile_sums, double* result,
                      const gpu::Launcher& launcher);

}  // namespace tilewire::rmse
