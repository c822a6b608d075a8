// Sum over a block by warp shuffles: what step 5 introduces and later steps use. Unnamed namespace: one of
// the files that include this is compiled with other options, and its code must stay its own.
#pragma once

namespace tilewire::ladder {
namespace {

constexpr int kWarp = 32;

/// Lane 0 receives the sum over the warp. A lane reads another's register: no shared memory, no barrier, 5
/// steps.
template <typename Sum>
__device__ Sum WarpSum(Sum sum) {
  for (int lanes = kWarp / 2; lanes >= 1; lanes /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lanes);
  return sum;
}

/// Thread 0 receives the sum over the block: each warp's into shared memory, then those by the first warp.
/// One barrier where the tree in shared memory needs eight. blockDim.x is a multiple of 32, at most 1024.
template <typename Sum>
__device__ Sum BlockSum(Sum sum) {
  __shared__ Sum of_warps[kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  sum = WarpSum(sum);
  if (lane == 0) of_warps[warp] = sum;
  __syncthreads();
  if (warp == 0) sum = WarpSum(lane < warps ? of_warps[lane] : Sum{0});
  return sum;
}

}  // namespace
}  // namespace tilewire::ladder
