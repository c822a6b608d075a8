// RMSE, step 5: lanes read each other's registers instead of shared memory (block_sum.cuh).
#include "kernels/ladder/block_sum.cuh"
#include "kernels/ladder/tree_step.h"

namespace tilewire::ladder {
namespace {

constexpr int kThreads = 256;

__global__ void ShuffleKernel(const float* a, const float* b, int64_t n, float* block_sums) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const float d = i < n ? a[i] - b[i] : 0;
  const float of_block = BlockSum(d * d);
  if (threadIdx.x == 0) block_sums[blockIdx.x] = of_block;
}

}  // namespace

constinit const RmseStep kRmseWarpShuffles = {
    .info = TreeInfo("5_warp_shuffles",
                     "Warp shuffles: registers to registers, one barrier instead of eight, 32 words of "
                     "shared memory a block."),
    .scratch_bytes = TreeBytes<kThreads>,
    .run = RunTree<ShuffleKernel, kThreads>};

}  // namespace tilewire::ladder
