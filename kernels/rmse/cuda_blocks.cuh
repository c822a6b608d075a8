// Host code that all launches share.
#pragma once

#include <algorithm>

#include "kernels/rmse/cuda_work.cuh"

namespace tilewire::rmse::cuda {

inline constexpr int kColumnShared = 48 << 10;  // bytes that a block of columns may use
inline constexpr int64_t kMaxGrid = int64_t{1} << 30;

constexpr int64_t CeilDiv(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

/// Multiprocessors of the current device.
inline int64_t Multiprocessors() {
  int device = 0, count = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
    return 1;
  return count;
}

/// Launches `blocks` blocks, in several grids where one would be too large.
template <typename Kernel, typename W, typename... More>
cudaError_t LaunchBlocks(const gpu::Launcher& launcher, Kernel kernel, int64_t blocks, int threads,
                         int shared, W work, const More&... more) {
  for (int64_t base = 0; base < blocks; base += kMaxGrid) {
    work.block_base = base;
    const auto grid = static_cast<unsigned>(std::min(kMaxGrid, blocks - base));
    if (const cudaError_t error = launcher.Run(kernel, dim3(grid), dim3(static_cast<unsigned>(threads)),
                                               static_cast<size_t>(shared), work, more...);
        error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}

/// Bytes of shared memory that a block of the current device may ask for.
inline int MostShared() {
  int device = 0, bytes = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess)
    return 0;
  return bytes;
}

/// As LaunchBlocks, for a block of up to MostShared() bytes.
template <typename Kernel, typename... More>
cudaError_t LaunchShared(const gpu::Launcher& launcher, Kernel kernel, int64_t blocks, int threads,
                         int shared, const Work& work, const More&... more) {
  // Always the same value: another thread may be about to launch this kernel with more than this launch
  // needs. When only listing, too, because what fits a multiprocessor depends on it.
  if (shared > kColumnShared) {
    const cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize, MostShared());
    if (error != cudaSuccess) return error;
  }
  return LaunchBlocks(launcher, kernel, blocks, threads, shared, work, more...);
}

}  // namespace tilewire::rmse::cuda
