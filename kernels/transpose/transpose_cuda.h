// Transpose on the GPU. The only transpose header that knows CUDA types.
#pragma once

#include "kernels/array/launch_cuda.h"
#include "kernels/transpose/transpose.h"

namespace tilewire::transpose {

/// Launches the permutation of one band; `in` and `out` are device pointers to the whole arrays.
/// Returns the launch's error.
cudaError_t CudaRange(const Plan& plan, const Range& range, const void* in, void* out,
                      const gpu::Launcher& launcher);

}  // namespace tilewire::transpose
