// Transpose, steps 6, 7 and 7a: four elements a thread, without and with padding, and with 32-bit indices.
#include "kernels/ladder/matrix_step.h"

namespace tilewire::ladder {
namespace {

constexpr int kTile = 32, kThreadRows = 8;

template <int kPitch, typename Index>
__global__ void SeveralKernel(const float* __restrict__ in, float* __restrict__ out, Index rows,
                              Index columns, Index first_row) {
  __shared__ float tile[kTile][kPitch];
  const Index tile_row = first_row + static_cast<Index>(blockIdx.y) * kTile;
  const Index tile_column = static_cast<Index>(blockIdx.x) * kTile;
  Index row = tile_row + threadIdx.y, column = tile_column + threadIdx.x;
#pragma unroll  // four loads are on their way before the first must arrive
  for (int i = 0; i < kTile; i += kThreadRows)
    if (row + i < rows && column < columns)
      tile[threadIdx.y + i][threadIdx.x] = in[(row + i) * columns + column];
  __syncthreads();
  row = tile_row + threadIdx.x, column = tile_column + threadIdx.y;
#pragma unroll
  for (int i = 0; i < kTile; i += kThreadRows)
    if (row < rows && column + i < columns)
      out[(column + i) * rows + row] = tile[threadIdx.x][threadIdx.y + i];
}

cudaError_t RunIndex32(const float* in, float* out, int64_t rows, int64_t columns,
                       const gpu::Launcher& launcher) {
  // Indices of a partial tile may pass the end by a tile; no product with a guarded one does.
  const bool fits = rows * columns < int64_t{1} << 31 && std::max(rows, columns) < (int64_t{1} << 31) - kTile;
  const auto run = fits ? RunTiles<SeveralKernel<kTile + 1, uint32_t>, kThreadRows>
                        : RunTiles<SeveralKernel<kTile + 1, int64_t>, kThreadRows>;
  return run(in, out, rows, columns, launcher);
}

}  // namespace

constinit const MatrixStep kTransposeSeveral = {
    .info = {.name = "6_several_32x8",
             .idea = "32 × 8 threads on a 32 × 32 tile: four loads in flight a thread; the bank conflict is "
                     "back to show what it costs now."},
    .run = RunTiles<SeveralKernel<kTile, int64_t>, kThreadRows>};

constinit const MatrixStep kTransposeSeveralPadded = {
    .info = {.name = "7_several_padded",
             .idea = "The same with rows of 33 words: the classic transpose, as it is usually taught."},
    .run = RunTiles<SeveralKernel<kTile + 1, int64_t>, kThreadRows>};

constinit const MatrixStep kTransposeIndex32 = {
    .info = {.name = "7a_index_32",
             .idea = "32-bit indices below 2^31 elements: about half the instructions."},
    .run = RunIndex32};

}  // namespace tilewire::ladder
