// Transpose, step 7b: instead of padding, the column of an element in the tile is its own XOR its row.
#include "kernels/ladder/matrix_step.h"

namespace tilewire::ladder {
namespace {

constexpr int kTile = 32, kThreadRows = 8;

__global__ void SwizzledKernel(const float* __restrict__ in, float* __restrict__ out, int64_t rows,
                               int64_t columns, int64_t first_row) {
  __shared__ float tile[kTile][kTile];
  const int64_t tile_row = first_row + int64_t{blockIdx.y} * kTile, tile_column = int64_t{blockIdx.x} * kTile;
  const unsigned x = threadIdx.x, y = threadIdx.y;
  int64_t row = tile_row + y, column = tile_column + x;
#pragma unroll
  for (unsigned i = 0; i < kTile; i += kThreadRows)
    if (row + i < rows && column < columns) tile[y + i][x ^ (y + i)] = in[(row + i) * columns + column];
  __syncthreads();
  row = tile_row + x, column = tile_column + y;
#pragma unroll  // lane x reads bank (y + i) ^ x: 32 lanes, 32 banks
  for (unsigned i = 0; i < kTile; i += kThreadRows)
    if (row < rows && column + i < columns) out[(column + i) * rows + row] = tile[x][(y + i) ^ x];
}

}  // namespace

constinit const MatrixStep kTransposeSwizzled = {
    .info = {.name = "7b_swizzled",
             .idea = "The column XOR the row in place of padding: as free of conflicts, and no word of "
                     "shared memory is wasted."},
    .run = RunTiles<SwizzledKernel, kThreadRows>};

}  // namespace tilewire::ladder
