// What a lane gathers of a tile that a warp sums, in whole words.
#pragma once

#include "kernels/rmse/cuda_work.cuh"

namespace tilewire::rmse::cuda {

/// What a lane gathers of a tile: accumulators in words of the type, `kRows` words to a round of 256.
template <typename E>
struct LaneSum {
  static constexpr int kN = kWord<E>, kRows = kAccumulators / 32 / kN;
  double acc[kRows][kN] = {};
  __device__ void Add(int k, const uint4& x, const uint4& y, uint64_t flip) {
#pragma unroll
    for (int v = 0; v < kN; ++v)
      acc[k % kRows][v] =
          Accumulate<E>(At<typename E::Type>(x, v), At<typename E::Type>(y, v), flip, acc[k % kRows][v]);
  }
  __device__ double Tree(int lane) {
    Fold<kRows>(acc);
    return WarpTree(acc[0], lane);
  }
};
template <typename E>
requires(E::kExact) struct LaneSum<E> {
  static constexpr int kN = kWord<E>, kRows = 1;
  typename E::Sum sum = 0;
  __device__ void Add(int, const uint4& x, const uint4& y, uint64_t flip) { sum += ExactSum<E>(x, y, flip); }
  __device__ double Tree(int) { return WarpExact(sum); }
};

}  // namespace tilewire::rmse::cuda
