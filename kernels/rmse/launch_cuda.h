// One choice, launched: what CudaWhole() is made of, open to tests and benchmarks that want a certain kernel.
#pragma once

#include "kernels/array/launch_cuda.h"
#include "kernels/rmse/choice.h"

namespace tilewire::rmse::cuda {

/// What CudaRange() and CudaWhole() choose for, on the current device.
Task TaskOf(const Plan& plan, const Range& range, bool whole, const void* a, const void* b);

/// CudaWhole() by a choice for TaskOf(plan, plan.whole(), true, a, b).
cudaError_t LaunchWhole(const Plan& plan, const Choice& choice, const void* a, const void* b,
                        double* tile_sums, double* result, const gpu::Launcher& launcher);

}  // namespace tilewire::rmse::cuda
