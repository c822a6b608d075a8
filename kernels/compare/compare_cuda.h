// Comparing on the GPU. With problem_cuda.h the only header here that knows CUDA types.
#pragma once

#include "kernels/array/launch_cuda.h"
#include "kernels/compare/compare.h"

namespace tilewire::compare {

/// Launches what is kept of the tiles of `range`; that of tile t of segment s goes to place s · tiles + t of
/// every plane. `element` is added to indices. a, b and planes are device pointers. Returns the launch's
/// error. Same bits as HostRange.
cudaError_t CudaRange(const rmse::Plan& plan, const rmse::Range& range, Kept kept, const void* a,
                      const void* b, int64_t element, const Planes& planes, const gpu::Launcher& launcher);

/// Launches the combination of all tiles into `values`. Leaves the planes overwritten. Same bits as
/// HostFinish.
cudaError_t CudaFinish(const rmse::Plan& plan, Kept kept, const Planes& planes, const Values& values,
                       const gpu::Launcher& launcher);

/// Both at once where segments are single tiles: segment s of the plan is segment s of `values`. Same bits as
/// HostSegments.
cudaError_t CudaSegments(const rmse::Plan& plan, const rmse::Range& range, Kept kept, const void* a,
                         const void* b, const Values& values, const gpu::Launcher& launcher);

}  // namespace tilewire::compare
