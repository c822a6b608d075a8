// Many short contiguous segments: kLanes lanes share one, a word each.
#pragma once

#include "kernels/rmse/cuda_work.cuh"

namespace tilewire::rmse::cuda {

inline constexpr int kGroupBatch = 4;  // segments that a group of lanes has in flight

/// The words that a lane holds of kGroupBatch segments.
template <typename E, int kRows>
struct GroupWords {
  uint4 x[kGroupBatch][kRows] = {}, y[kGroupBatch][kRows] = {};
  int low[kGroupBatch];  ///< where each segment begins, in elements from the lane's first word
};

/// Loads word `word` and, where kRows is 2, word + 32 of segments first, first + step, ... `inside`: all
/// words of the warp lie inside the arrays, so nothing stands between the loads.
template <typename E, int kRows>
__device__ void LoadGroup(const Work& work, int64_t first, int step, int word, bool inside,
                          GroupWords<E, kRows>& words) {
  using T = typename E::Type;
  constexpr int64_t kSize = sizeof(T);
  constexpr int kN = kWord<E>;
  const int length = static_cast<int>(work.layout.elements);
  int64_t at[kGroupBatch];
#pragma unroll
  for (int u = 0; u < kGroupBatch; ++u) {
    const int64_t base = (first + u * step) * length * kSize;
    words.low[u] = Misalignment<E>(work.a + base) - word * kN;
    at[u] = base - words.low[u] * kSize;
  }
  const char *a_begin = work.a + work.range.byte_begin, *a_end = work.a + work.range.byte_end;
  const char *b_begin = work.b + work.range.byte_begin, *b_end = work.b + work.range.byte_end;
  if (inside) {
#pragma unroll
    for (int u = 0; u < kGroupBatch; ++u) {
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        if (words.low[u] + length <= k * 32 * kN) continue;
        words.x[u][k] = __ldg(reinterpret_cast<const uint4*>(work.a + at[u] + k * 512));
        words.y[u][k] = __ldg(reinterpret_cast<const uint4*>(work.b + at[u] + k * 512));
      }
    }
    return;
  }
#pragma unroll
  for (int u = 0; u < kGroupBatch; ++u) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (first + u * step >= work.range.segment_end || words.low[u] + length <= k * 32 * kN) continue;
      words.x[u][k] = LoadWithin<T>(work.a + at[u] + k * 512, a_begin, a_end);
      words.y[u][k] = LoadWithin<T>(work.b + at[u] + k * 512, b_begin, b_end);
    }
  }
}

/// The tree over a group's words: `mine` receives the sums of the segments that the lane then holds.
template <typename E, int kLanes, int kRows>
__device__ void SumGroup(const Work& work, GroupWords<E, kRows>& words, int lane,
                         double (&mine)[kGroupBatch]) {
  using T = typename E::Type;
  constexpr int kN = kWord<E>;
  const int length = static_cast<int>(work.layout.elements);
  if constexpr (E::kExact) {
    typename E::Sum sum[kGroupBatch][1] = {};
#pragma unroll
    for (int u = 0; u < kGroupBatch; ++u) {
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        const int begin = words.low[u] - k * 32 * kN;
        if (begin > 0 || begin + length < kN) {
          Keep<T>(words.x[u][k], begin, begin + length);
          Keep<T>(words.y[u][k], begin, begin + length);
        }
        sum[u][0] += ExactSum<E>(words.x[u][k], words.y[u][k], work.flip);
      }
    }
    ExchangeAll<kLanes, kGroupBatch>(sum, lane);
#pragma unroll
    for (int u = 0; u < kGroupBatch; ++u) mine[u] = __ull2double_rn(sum[u][0]);
  } else {
    double sum[kGroupBatch][kN];
#pragma unroll
    for (int u = 0; u < kGroupBatch; ++u) {
      const int begin = words.low[u], end = begin + length;
#pragma unroll
      for (int v = 0; v < kN; ++v) {
        const double square = Accumulate<E>(At<T>(words.x[u][0], v), At<T>(words.y[u][0], v), work.flip, 0.0);
        sum[u][v] = v >= begin && v < end ? square : 0.0;
        if constexpr (kRows == 2) {
          const int p = v + 32 * kN;
          // Rows of 8-element words are 256 elements apart, so in the same accumulator; others are a level of
          // the tree apart.
          const double before = kN == 8 ? sum[u][v] : 0.0;
          const double next =
              Accumulate<E>(At<T>(words.x[u][1], v), At<T>(words.y[u][1], v), work.flip, before);
          if (p >= begin && p < end) sum[u][v] = kN == 8 ? next : __dadd_rn(sum[u][v], next);
        }
      }
    }
    ExchangeAll<kLanes, kGroupBatch>(sum, lane);
#pragma unroll
    for (int u = 0; u < kGroupBatch; ++u) {
      Fold<kN>(sum[u]);
      mine[u] = sum[u][0];
    }
  }
}

/// Lane l of a group holds words l and, where kRows is 2, l + 32 of each of its segments, counted from the
/// 16-byte boundary at or before the segment's start. A start inside a word rotates all positions alike: the
/// tree adds positions p and p + s modulo 2s, so a rotation meets the same pairs, and the segment fits the
/// group's words with the rotation.
template <typename E, int kLanes, int kRows>
__global__ void __launch_bounds__(kBlockThreads) GroupKernel(const __grid_constant__ Work work) {
  constexpr int64_t kSize = sizeof(typename E::Type);
  constexpr int kGroups = 32 / kLanes, kSegments = kGroups * kGroupBatch;
  const int lane = threadIdx.x % 32, word = lane % kLanes;
  const int64_t warp = (work.block_base + blockIdx.x) * (kBlockThreads / 32) + threadIdx.x / 32;
  const int64_t warp_first = work.range.segment_begin + warp * kSegments;
  const int64_t first = warp_first + lane / kLanes;
  const int64_t bytes = work.layout.elements * kSize;
  const bool inside = warp_first * bytes >= work.range.byte_begin + 16 &&
                      (warp_first + kSegments) * bytes + 16 <= work.range.byte_end;
  GroupWords<E, kRows> words;
  LoadGroup<E, kRows>(work, first, kGroups, word, inside, words);
  double mine[kGroupBatch];
  SumGroup<E, kLanes, kRows>(work, words, lane, mine);
  // A lane holds kGroupBatch / kLanes segments, at least one; the first exchange gave the upper half of the
  // batch to the upper lanes, and so on. Where several lanes hold the same, the first of them stores it.
  constexpr int kHeld = kGroupBatch > kLanes ? kGroupBatch / kLanes : 1;
  constexpr int kSame = kLanes > kGroupBatch ? kLanes / kGroupBatch : 1;
#pragma unroll
  for (int u = 0; u < kHeld; ++u) {
    const int64_t segment = first + (word / kSame * kHeld + u) * kGroups;
    if (word % kSame == 0 && segment < work.range.segment_end) Store(work, segment, 0, mine[u]);
  }
}

}  // namespace tilewire::rmse::cuda
