// What the steps' launches share: counting blocks, zeroing sums, asking how many blocks the GPU holds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/array/launch_cuda.h"

namespace tilewire::ladder {

/// Blocks that cover n things, per_block each.
constexpr unsigned BlocksFor(int64_t n, int64_t per_block) {
  return static_cast<unsigned>(n / per_block + (n % per_block != 0));
}

/// Enqueues zeroes over `bytes` at `data`; nothing when launches are listed.
inline cudaError_t Zero(void* data, int64_t bytes, const gpu::Launcher& launcher) {
  if (launcher.lists()) return cudaSuccess;
  return cudaMemsetAsync(data, 0, static_cast<size_t>(bytes), launcher.stream());
}

/// A launch that fills the GPU once, or the error of finding it out.
struct FullGpu {
  cudaError_t error = cudaSuccess;
  int block = 0;  ///< threads
  int grid = 0;   ///< blocks that are resident at once
};

/// The launch with `block` threads a block. Asks the driver, which takes microseconds: keep the answer.
template <typename Kernel>
FullGpu FillGpu(Kernel kernel, int block) {
  FullGpu full{.block = block};
  int device = 0, processors = 0, blocks = 0;
  full.error = cudaGetDevice(&device);
  if (full.error == cudaSuccess)
    full.error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (full.error == cudaSuccess)
    full.error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, block, 0);
  full.grid = processors * blocks;
  return full;
}

/// The launch with the block size that keeps most threads resident, as the occupancy calculator finds it.
template <typename Kernel>
FullGpu FillGpu(Kernel kernel) {
  FullGpu full;
  full.error = cudaOccupancyMaxPotentialBlockSize(&full.grid, &full.block, kernel, 0, 0);
  return full;
}

/// Enqueues results[i] = sqrt(sums[i] / n): the end of the steps whose sums are single f32 numbers.
cudaError_t LaunchRoots(const float* sums, int64_t n, int64_t count, double* results,
                        const gpu::Launcher& launcher);

/// Numbers of scratch that LaunchFinish needs behind the sums.
inline constexpr int kFewerSums = 1024;

/// Enqueues *result = sqrt((sums[0] + … + sums[count - 1]) / n), added in an order that count alone decides.
cudaError_t LaunchFinish(float* sums, int64_t count, int64_t n, double* result,
                         const gpu::Launcher& launcher);

}  // namespace tilewire::ladder
