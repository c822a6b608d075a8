// RMSE, step 3: a block adds up in shared memory, pairs first, as trees are drawn; then one atomic a block.
#include "kernels/ladder/launch.h"
#include "kernels/ladder/steps.h"

namespace tilewire::ladder {
namespace {

constexpr int kThreads = 256;

__global__ void DivergentKernel(const float* a, const float* b, int64_t n, float* sum) {
  __shared__ float sums[kThreads];
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const float d = i < n ? a[i] - b[i] : 0;
  sums[threadIdx.x] = d * d;
  for (int s = 1; s < kThreads; s *= 2) {
    __syncthreads();
    // Threads 0, 2, 4, … then 0, 4, 8, …: a few lanes of every warp work, so no warp may rest.
    if (threadIdx.x % (2 * s) == 0) sums[threadIdx.x] += sums[threadIdx.x + s];
  }
  if (threadIdx.x == 0) atomicAdd(sum, sums[0]);
}

cudaError_t Run(const float* a, const float* b, int64_t n, double* result, void* scratch,
                const gpu::Launcher& launcher) {
  auto* sum = static_cast<float*>(scratch);
  cudaError_t error = Zero(sum, sizeof *sum, launcher);
  if (error == cudaSuccess)
    error = launcher.Run(DivergentKernel, BlocksFor(n, kThreads), kThreads, 0, a, b, n, sum);
  return error == cudaSuccess ? LaunchRoots(sum, n, 1, result, launcher) : error;
}

}  // namespace

// Block sums are trees and nearly exact; the chain of n / 256 atomic additions is what rounds.
constinit const RmseStep kRmseTreeDivergent = {
    .info = {.name = "3_tree_divergent",
             .idea = "A tree in shared memory: one atomic a block, which is still what it waits for.",
             .exactness = Exactness::kTolerance,
             .tolerance = 1e-3,
             .tolerance_elements = int64_t{1} << 28},
    .scratch_bytes = [](int64_t) -> int64_t { return sizeof(float); },
    .run = Run};

}  // namespace tilewire::ladder
