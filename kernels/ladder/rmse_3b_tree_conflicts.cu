// RMSE, step 3b: the same tree with the working threads packed together, which moves the trouble into the
// banks.
#include "kernels/ladder/tree_step.h"

namespace tilewire::ladder {
namespace {

constexpr int kThreads = 256;

__global__ void ConflictsKernel(const float* a, const float* b, int64_t n, float* block_sums) {
  __shared__ float sums[kThreads];
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const float d = i < n ? a[i] - b[i] : 0;
  sums[threadIdx.x] = d * d;
  for (int s = 1; s < kThreads; s *= 2) {
    __syncthreads();
    const int at = 2 * s * static_cast<int>(threadIdx.x);
    if (at >= kThreads) return;  // barriers wait for threads that have not left, so whole warps may go
    // Lanes work 2·s words apart: at s = 4 lanes 0, 4, 8, … of a warp meet in one bank.
    sums[at] += sums[at + s];
  }
  block_sums[blockIdx.x] = sums[0];  // thread 0 is left
}

}  // namespace

constinit const RmseStep kRmseTreeConflicts = {
    .info = TreeInfo("3b_tree_conflicts",
                     "The same tree with adjacent threads at work: whole warps leave early, but strided "
                     "addresses collide in the banks of shared memory."),
    .scratch_bytes = TreeBytes<kThreads>,
    .run = RunTree<ConflictsKernel, kThreads>};

}  // namespace tilewire::ladder
