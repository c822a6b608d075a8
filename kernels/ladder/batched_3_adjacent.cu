// Batched RMSE, step 3: adjacent threads take adjacent batches, so that a warp reads whole lines.
#include "kernels/ladder/launch.h"
#include "kernels/ladder/steps.h"

namespace tilewire::ladder {
namespace {

constexpr int kThreads = 256;

/// blockDim = (batches of a group, rows of threads), powers of two; a block takes every gridDim.x-th set of
/// rows.
__global__ void __launch_bounds__(kThreads)
    AdjacentKernel(const float* a, const float* b, int64_t n, int64_t batch, unsigned share, float* sums) {
  __shared__ float of_threads[kThreads];
  const int64_t mine = int64_t{blockIdx.x / share} * blockDim.x + threadIdx.x;
  const unsigned part = blockIdx.x % share;
  float sum = 0;
  if (mine < batch) {
#pragma unroll 4
    for (int64_t i = int64_t{part} * blockDim.y + threadIdx.y; i < n; i += int64_t{share} * blockDim.y) {
      const float d = a[i * batch + mine] - b[i * batch + mine];
      sum += d * d;
    }
  }
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  of_threads[thread] = sum;
  for (unsigned s = kThreads / 2; s >= blockDim.x;
       s /= 2) {  // folds rows of threads: step 4 of the RMSE ladder
    __syncthreads();
    if (thread < s) of_threads[thread] += of_threads[thread + s];
  }
  if (threadIdx.y == 0 && mine < batch) atomicAdd(&sums[mine], of_threads[thread]);
}

cudaError_t Run(const float* a, const float* b, int64_t rows, int64_t columns, int64_t batch, double* result,
                void* scratch, const gpu::Launcher& launcher) {
  static const FullGpu full = FillGpu(AdjacentKernel, kThreads);
  if (full.error != cudaSuccess) return full.error;
  const int64_t n = rows * columns;
  unsigned width = 1;
  while (width < 32 && width < batch) width *= 2;
  const unsigned groups = BlocksFor(batch, width);
  const unsigned share = std::min(BlocksFor(full.grid, groups), BlocksFor(n, kThreads / width));
  auto* sums = static_cast<float*>(scratch);
  cudaError_t error = Zero(sums, batch * static_cast<int64_t>(sizeof *sums), launcher);
  if (error == cudaSuccess)
    error = launcher.Run(AdjacentKernel, groups * share, dim3(width, kThreads / width), 0, a, b, n, batch,
                         share, sums);
  return error == cudaSuccess ? LaunchRoots(sums, n, batch, result, launcher) : error;
}

}  // namespace

constinit const BatchedStep kBatchedAdjacent = {
    .info = {.name = "3_adjacent_batches",
             .idea = "Adjacent threads take adjacent batches: a warp reads two rows of 16 batches as one "
                     "full line, every byte once.",
             .exactness = Exactness::kTolerance,
             .tolerance = 1e-4,
             .tolerance_elements = int64_t{1} << 28},
    .scratch_bytes = [](int64_t, int64_t, int64_t batch) -> int64_t {
      return batch * static_cast<int64_t>(sizeof(float));
    },
    .run = Run};

}  // namespace tilewire::ladder
