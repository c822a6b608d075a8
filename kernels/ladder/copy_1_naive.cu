// Copy, steps 1 to 3: a thread an element. Only the shape of a block differs, and with it what a warp
// touches.
#include "kernels/ladder/matrix_step.h"

namespace tilewire::ladder {
namespace {

__global__ void CopyKernel(const float* in, float* out, int64_t rows, int64_t columns, int64_t first_row) {
  const int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t row = first_row + int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  if (row < rows && column < columns) out[row * columns + column] = in[row * columns + column];
}

}  // namespace

constinit const MatrixStep kCopyNaive32x32 = {
    .info = {.name = "1_naive_32x32",
             .idea = "A thread an element, blocks of 32 × 32: a warp is one line of 128 bytes."},
    .transposes = false,
    .run = RunNaive<CopyKernel, 32, 32>};

constinit const MatrixStep kCopyNaive1024x1 = {
    .info = {.name = "2_naive_1024x1",
             .idea = "Blocks of 1024 × 1, along a row: as good, for a warp is a line again."},
    .transposes = false,
    .run = RunNaive<CopyKernel, 1024, 1>};

constinit const MatrixStep kCopyNaive1x1024 = {
    .info = {.name = "3_naive_1x1024",
             .idea = "Blocks of 1 × 1024, down a column: a warp touches 32 lines for 4 bytes of each, "
                     "reading and writing."},
    .transposes = false,
    .run = RunNaive<CopyKernel, 1, 1024>};

}  // namespace tilewire::ladder
