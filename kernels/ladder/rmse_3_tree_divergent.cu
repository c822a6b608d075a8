// RMSE, step 3: a block adds up in shared memory, pairs first, as trees are drawn.
#include "kernels/ladder/tree_step.h"

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

}  // namespace

constinit const RmseStep kRmseTreeDivergent = {
    .info = TreeInfo(
        "3_tree_divergent",
        "A tree in shared memory: one atomic a block. Every second thread works, then every fourth, so "
        "all warps stay busy with ever fewer lanes."),
    .scratch_bytes = OneFloat,
    .run = RunTree<DivergentKernel, kThreads>};

}  // namespace tilewire::ladder
