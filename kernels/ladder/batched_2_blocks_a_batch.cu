// Batched RMSE, step 2: several blocks share a batch, so that every multiprocessor has work.
#include "kernels/ladder/block_sum.cuh"
#include "kernels/ladder/launch.h"
#include "kernels/ladder/steps.h"

namespace tilewire::ladder {
namespace {

constexpr int kThreads = 256;

__global__ void BlocksABatchKernel(const float* a, const float* b, int64_t n, int64_t batch, unsigned share,
                                   float* sums) {
  const unsigned mine = blockIdx.x / share, part = blockIdx.x % share;
  float sum = 0;
  for (int64_t i = int64_t{part} * kThreads + threadIdx.x; i < n; i += int64_t{share} * kThreads) {
    const int64_t at = i * batch + mine;
    const float d = a[at] - b[at];
    sum += d * d;
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) atomicAdd(&sums[mine], sum);
}

cudaError_t Run(const float* a, const float* b, int64_t rows, int64_t columns, int64_t batch, double* result,
                void* scratch, const gpu::Launcher& launcher) {
  static const FullGpu full = FillGpu(BlocksABatchKernel, kThreads);
  if (full.error != cudaSuccess) return full.error;
  const int64_t n = rows * columns;
  const unsigned share = std::min(BlocksFor(full.grid, batch), BlocksFor(n, kThreads));
  auto* sums = static_cast<float*>(scratch);
  cudaError_t error = Zero(sums, batch * static_cast<int64_t>(sizeof *sums), launcher);
  if (error == cudaSuccess)
    error = launcher.Run(BlocksABatchKernel, BlocksFor(batch * share, 1), kThreads, 0, a, b, n, batch, share,
                         sums);
  return error == cudaSuccess ? LaunchRoots(sums, n, batch, result, launcher) : error;
}

}  // namespace

constinit const BatchedStep kBatchedBlocksABatch = {
    .info = {.name = "2_blocks_a_batch",
             .idea = "Several blocks a batch, one atomic each: every multiprocessor works, but batches no "
                     "longer walk in step, and memory sends each sector up to eight times.",
             .exactness = Exactness::kTolerance,
             .tolerance = 1e-4,
             .tolerance_elements = int64_t{1} << 28},
    .scratch_bytes = [](int64_t, int64_t, int64_t batch) -> int64_t {
      return batch * static_cast<int64_t>(sizeof(float));
    },
    .run = Run};

}  // namespace tilewire::ladder
