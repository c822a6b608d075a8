// The launches that the copies and transposes share.
#pragma once

#include "kernels/ladder/launch.h"
#include "kernels/ladder/steps.h"

namespace tilewire::ladder {

/// Covers the matrix with blocks of tile_rows × tile_columns elements. gridDim.y ends at 65,535, so tall
/// matrices take several launches: kernel(in, out, rows, columns, first row of this launch).
template <typename Kernel>
cudaError_t LaunchOverMatrix(Kernel kernel, dim3 block, int64_t tile_rows, int64_t tile_columns,
                             const float* in, float* out, int64_t rows, int64_t columns,
                             const gpu::Launcher& launcher) {
  constexpr int64_t kMaxGridY = 65535;
  for (int64_t first = 0; first < rows; first += kMaxGridY * tile_rows) {
    const int64_t some = std::min(rows - first, kMaxGridY * tile_rows);
    const dim3 grid(BlocksFor(columns, tile_columns), BlocksFor(some, tile_rows));
    const cudaError_t error = launcher.Run(kernel, grid, block, 0, in, out, rows, columns, first);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

/// Tiles of 32 × 32 elements, moved by 32 × kThreadRows threads.
template <auto kKernel, unsigned kThreadRows>
cudaError_t RunTiles(const float* in, float* out, int64_t rows, int64_t columns,
                     const gpu::Launcher& launcher) {
  return LaunchOverMatrix(kKernel, dim3(32, kThreadRows), 32, 32, in, out, rows, columns, launcher);
}

/// A thread an element, in blocks of kX × kY.
template <auto kKernel, unsigned kX, unsigned kY>
cudaError_t RunNaive(const float* in, float* out, int64_t rows, int64_t columns,
                     const gpu::Launcher& launcher) {
  return LaunchOverMatrix(kKernel, dim3(kX, kY), kY, kX, in, out, rows, columns, launcher);
}

}  // namespace tilewire::ladder
