// Gaussian pdf on the GPU. The only gaussian header that knows CUDA types.
#pragma once

#include "kernels/array/launch_cuda.h"
#include "kernels/gaussian/gaussian.h"

namespace tilewire::gaussian {

/// Launches the pdf of a range; `in` and `out` are device pointers to the whole arrays. Returns the launch's
/// error. Same bits as HostRange.
cudaError_t CudaRange(const Plan& plan, const Range& range, const void* in, void* out,
                      const gpu::Launcher& launcher);

}  // namespace tilewire::gaussian
