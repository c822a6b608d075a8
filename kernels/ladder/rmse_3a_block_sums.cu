// RMSE, step 3a: the same tree, but no atomics: the blocks' sums go to memory, and a second launch adds them.
#include "kernels/ladder/tree_step.h"

namespace tilewire::ladder {
namespace {

constexpr int kThreads = 256;

__global__ void BlockSumsKernel(const float* a, const float* b, int64_t n, float* block_sums) {
  __shared__ float sums[kThreads];
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const float d = i < n ? a[i] - b[i] : 0;
  sums[threadIdx.x] = d * d;
  for (int s = 1; s < kThreads; s *= 2) {
    __syncthreads();
    // Compiled to predicated instructions: every warp issues them on every level, though few lanes take part.
    if (threadIdx.x % (2 * s) == 0) sums[threadIdx.x] += sums[threadIdx.x + s];
  }
  if (threadIdx.x == 0) block_sums[blockIdx.x] = sums[0];  // an address of its own: nobody waits
}

}  // namespace

constinit const RmseStep kRmseBlockSums = {
    .info = TreeInfo("3a_block_sums",
                     "A place for each block's sum and a second launch in place of atomics: no queue, and "
                     "from here on the same bits each time."),
    .scratch_bytes = TreeBytes<kThreads>,
    .run = RunTree<BlockSumsKernel, kThreads>};

}  // namespace tilewire::ladder
