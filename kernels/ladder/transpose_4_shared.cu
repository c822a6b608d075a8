// Transpose, steps 4 and 5: a tile goes through shared memory, so that both sides of global memory see whole
// lines. The pitch of the tile is the whole difference between the two.
#include "kernels/ladder/matrix_step.h"

namespace tilewire::ladder {
namespace {

constexpr int kTile = 32;

/// kPitch: words from a row of the tile to the next. 32: a column lies in one bank, and 32 lanes wait for
/// each other. 33: the column's words lie in 32 banks.
template <int kPitch>
__global__ void SharedKernel(const float* in, float* out, int64_t rows, int64_t columns, int64_t first_row) {
  __shared__ float tile[kTile][kPitch];
  const int64_t tile_row = first_row + int64_t{blockIdx.y} * kTile, tile_column = int64_t{blockIdx.x} * kTile;
  int64_t row = tile_row + threadIdx.y, column = tile_column + threadIdx.x;
  if (row < rows && column < columns) tile[threadIdx.y][threadIdx.x] = in[row * columns + column];
  __syncthreads();
  // From here a warp stands for a column of the tile: 32 adjacent elements of the output.
  row = tile_row + threadIdx.x, column = tile_column + threadIdx.y;
  if (row < rows && column < columns) out[column * rows + row] = tile[threadIdx.x][threadIdx.y];
}

}  // namespace

constinit const MatrixStep kTransposeShared = {
    .info = {.name = "4_shared",
             .idea = "A 32 × 32 tile through shared memory: whole lines on both sides, but reading a column "
                     "of the tile is a 32-way bank conflict."},
    .run = RunTiles<SharedKernel<kTile>, kTile>};

constinit const MatrixStep kTransposePadded = {
    .info =
        {.name = "5_shared_padded",
         .idea =
             "Rows of 33 words: a column of the tile lies in 32 different banks, so the conflict is gone."},
    .run = RunTiles<SharedKernel<kTile + 1>, kTile>};

}  // namespace tilewire::ladder
