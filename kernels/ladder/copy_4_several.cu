// Copy, step 4: four elements a thread.
#include "kernels/ladder/matrix_step.h"

namespace tilewire::ladder {
namespace {

constexpr int kTile = 32, kThreadRows = 8;

__global__ void SeveralKernel(const float* __restrict__ in, float* __restrict__ out, int64_t rows,
                              int64_t columns, int64_t first_row) {
  const int64_t column = int64_t{blockIdx.x} * kTile + threadIdx.x;
  const int64_t row = first_row + int64_t{blockIdx.y} * kTile + threadIdx.y;
  if (column >= columns) return;
#pragma unroll  // with __restrict__, all four loads go out before the first store waits
  for (int i = 0; i < kTile; i += kThreadRows)
    if (row + i < rows) out[(row + i) * columns + column] = in[(row + i) * columns + column];
}

}  // namespace

constinit const MatrixStep kCopySeveral = {
    .info = {.name = "4_several_32x8",
             .idea = "32 × 8 threads on 32 × 32 elements: four loads in flight a thread, and a quarter of "
                     "the index arithmetic an element."},
    .transposes = false,
    .run = RunTiles<SeveralKernel, kThreadRows>};

}  // namespace tilewire::ladder
