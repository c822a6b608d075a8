// Looking at compiled kernels on the current device.
#pragma once

#include "kernels/array/kernel_info.h"
#include "kernels/array/launch_cuda.h"

namespace tilewire::gpu {

/// Attributes, occupancy and name of a launch's kernel on the current device. Loads the kernel where that has
/// not happened yet. Returns the runtime's error; `info` is then unspecified.
cudaError_t Describe(const Launch& launch, KernelInfo* info);

}  // namespace tilewire::gpu
