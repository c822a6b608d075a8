// Batched RMSE, step 1: a block sums one batch.
#include "kernels/ladder/block_sum.cuh"
#include "kernels/ladder/launch.h"
#include "kernels/ladder/steps.h"

namespace tilewire::ladder {
namespace {

constexpr int kThreads = 1024;

__global__ void BlockABatchKernel(const float* a, const float* b, int64_t n, int64_t batch, double* result) {
  float sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    const int64_t at =
        i * batch + blockIdx.x;  // neighbours are `batch` elements apart: a line each, for 4 bytes
    const float d = a[at] - b[at];
    sum += d * d;
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) result[blockIdx.x] = sqrt(static_cast<double>(sum) / static_cast<double>(n));
}

cudaError_t Run(const float* a, const float* b, int64_t rows, int64_t columns, int64_t batch, double* result,
                void*, const gpu::Launcher& launcher) {
  return launcher.Run(BlockABatchKernel, BlocksFor(batch, 1), kThreads, 0, a, b, rows * columns, batch,
                      result);
}

}  // namespace

constinit const BatchedStep kBatchedBlockABatch = {
    .info = {.name = "1_block_a_batch",
             .idea = "A block a batch: 16 batches keep 16 multiprocessors busy and the rest idle, and each "
                     "load brings a 32-byte sector for 4 bytes.",
             .exactness = Exactness::kReproducible,
             .tolerance = 1e-4,
             .tolerance_elements = int64_t{1} << 28},
    .scratch_bytes = [](int64_t, int64_t, int64_t) -> int64_t { return 0; },
    .run = Run};

}  // namespace tilewire::ladder
