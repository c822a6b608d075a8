// RMSE, step 4: the tree folds its upper half onto the lower, so that adjacent threads touch adjacent words.
#include "kernels/ladder/tree_step.h"

namespace tilewire::ladder {
namespace {

template <int kThreads>
__global__ void SequentialKernel(const float* a, const float* b, int64_t n, float* block_sums) {
  __shared__ float sums[kThreads];
  const int thread = threadIdx.x;
  const int64_t i = int64_t{blockIdx.x} * kThreads + thread;
  const float d = i < n ? a[i] - b[i] : 0;
  sums[thread] = d * d;
  // Rounding the half up, and leaving the middle one of an odd count alone, allows any block size.
  for (int left = kThreads, half; left > 1; left = half) {
    half = (left + 1) / 2;
    __syncthreads();
    if (thread >= half) return;
    if (thread + half < left) sums[thread] += sums[thread + half];
  }
  block_sums[blockIdx.x] = sums[0];  // thread 0 is left
}

constexpr int kPower = 256, kOther = 352;  // 352 = 11 warps: 352, 176, 88, 44, 22, 11, 6, 3, 2, 1

}  // namespace

constinit const RmseStep kRmseTreeSequential = {
    .info = TreeInfo("4_tree_sequential",
                     "The upper half folds onto the lower: adjacent threads touch adjacent words, without "
                     "bank conflicts, and warps leave early."),
    .scratch_bytes = TreeBytes<kPower>,
    .run = RunTree<SequentialKernel<kPower>, kPower>};

constinit const RmseStep kRmseTreeAnySize = {
    .info = TreeInfo("4a_tree_any_size",
                     "The same with 352 threads, no power of two: the half is rounded up. One level more, "
                     "and 352 fits less evenly into a multiprocessor's 2048 threads."),
    .scratch_bytes = TreeBytes<kOther>,
    .run = RunTree<SequentialKernel<kOther>, kOther>};

}  // namespace tilewire::ladder
