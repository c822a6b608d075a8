// Transpose, steps 1 to 3: a thread an element. The block's shape chooses which side is read or written
// badly.
#include "kernels/ladder/matrix_step.h"

namespace tilewire::ladder {
namespace {

__global__ void NaiveKernel(const float* in, float* out, int64_t rows, int64_t columns, int64_t first_row) {
  const int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t row = first_row + int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  if (row < rows && column < columns) out[column * rows + row] = in[row * columns + column];
}

}  // namespace

constinit const MatrixStep kTransposeNaive32x32 = {
    .info = {.name = "1_naive_32x32",
             .idea = "Blocks of 32 × 32: a warp reads 4 sectors and writes 32, 4 bytes into each."},
    .run = RunNaive<NaiveKernel, 32, 32>};

constinit const MatrixStep kTransposeNaive1024x1 = {
    .info = {.name = "2_naive_1024x1",
             .idea = "Blocks of 1024 × 1: as good reads and as bad writes, and no thread of the block "
                     "completes a sector that another began."},
    .run = RunNaive<NaiveKernel, 1024, 1>};

constinit const MatrixStep kTransposeNaive1x1024 = {
    .info = {.name = "3_naive_1x1024",
             .idea = "Blocks of 1 × 1024: writes are whole lines, and each of a warp's reads fetches a "
                     "sector for 4 bytes; the cache forgives reads more than writes."},
    .run = RunNaive<NaiveKernel, 1, 1024>};

}  // namespace tilewire::ladder
