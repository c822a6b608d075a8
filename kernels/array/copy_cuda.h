// Copying bytes with a kernel, for memory that no CPU may touch.
#pragma once

#include <cstddef>

#include "kernels/array/launch_cuda.h"

namespace tilewire::gpu {

/// Copies `bytes` bytes as cudaMemcpyAsync would, but with a kernel: no CPU reads or writes them, however few
/// they are. `to` and `from` are addresses of the current device's, of its memory or of pinned host memory,
/// with any alignment; they do not overlap. Each byte of `to` is written once and none beside them, no byte
/// is read outside of `from`. Meant for up to some MiB: only a part of the device takes part. Launches
/// nothing for no bytes. Returns the launch's error.
cudaError_t CopyBytes(std::byte* to, const std::byte* from, size_t bytes, const Launcher& launcher);

}  // namespace tilewire::gpu
