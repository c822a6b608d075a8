// What one warp does with a tile: gather it in registers, and the tree over its lanes.
#pragma once

#include "kernels/rmse/cuda_work.cuh"

namespace tilewire::rmse::cuda {

/// The tree over a warp in which lane l holds positions l·kValues + v (modulo what came before). A lane keeps
/// half of its values a level, as long as it has several; the levels within a word come last, over the lanes
/// that then hold them. Every lane returns the sum.
template <int kValues>
__device__ double WarpTree(double (&acc)[kValues], int lane) {
  int held = kValues;
#pragma unroll
  for (int lanes = 16; lanes >= 1; lanes /= 2) {
    if (held > 1) {
      held /= 2;
      const bool upper = (lane & lanes) != 0;
#pragma unroll
      for (int v = 0; v < kValues / 2; ++v) {
        if (v < held) {
          const double give = upper ? acc[v] : acc[v + held];
          const double keep = upper ? acc[v + held] : acc[v];
          acc[v] = __dadd_rn(keep, __shfl_xor_sync(0xffffffffu, give, lanes));
        }
      }
    } else {
      acc[0] = __dadd_rn(acc[0], __shfl_xor_sync(0xffffffffu, acc[0], lanes));
    }
  }
#pragma unroll
  for (int lanes = 16, v = kValues; v > 1; lanes /= 2, v /= 2)
    acc[0] = __dadd_rn(acc[0], __shfl_xor_sync(0xffffffffu, acc[0], lanes));
  return acc[0];
}

template <typename Sum>
__device__ double WarpExact(Sum part) {
  unsigned long long sum = part;
#pragma unroll
  for (int lanes = 16; lanes >= 1; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  return __ull2double_rn(sum);
}

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
#pragma unroll
    for (int s = kRows / 2; s >= 1; s /= 2) {
#pragma unroll
      for (int k = 0; k < s; ++k) {
#pragma unroll
        for (int v = 0; v < kN; ++v) acc[k][v] = __dadd_rn(acc[k][v], acc[k + s][v]);
      }
    }
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

/// A warp's sum of the n ≤ 4096 elements from `rows.first` on of the segment at element `base`, wherever they
/// lie.
template <typename E>
__device__ __noinline__ double GatherTile(const Work& work, int64_t base, const RowCursor& rows, int n,
                                          int lane) {
  using T = typename E::Type;
  const auto* a = reinterpret_cast<const T*>(work.a) + base;
  const auto* b = reinterpret_cast<const T*>(work.b) + base;
  double acc[8] = {};
  for (int round = 0; round < n; round += static_cast<int>(kAccumulators)) {
    T x[8] = {}, y[8] = {};
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const int j = round + c * 32 + lane;
      if (j < n) {
        const int64_t at = rows.Offset(work.rows, work.layout, j);
        x[c] = a[at];
        y[c] = b[at];
      }
    }
#pragma unroll
    for (int c = 0; c < 8; ++c) acc[c] = Accumulate<E>(x[c], y[c], work.flip, acc[c]);
  }
  Fold<8>(acc);
  double one[1] = {acc[0]};
  return WarpTree(one, lane);
}

/// A warp's sum of the n ≤ 4096 elements at byte offset `base` of both operands, which are misaligned alike.
/// Words are counted from the 16-byte boundary before; cuda_group.cuh says why the rotation changes nothing.
template <typename E, int kBatch>
__device__ double WarpTile(const Work& work, int64_t base, int n, int lane) {
  using T = typename E::Type;
  constexpr int kN = kWord<E>;
  const int skip = Misalignment<E>(work.a + base);
  const int64_t start = base - skip * static_cast<int64_t>(sizeof(T));
  const int words = (skip + n + kN - 1) / kN;
  if (start < work.range.byte_begin ||
      start + words * 16 > work.range.byte_end) {  // at the rim of the arrays
    const RowMap contiguous{.axes = 1, .inner = 0, .inner_stride = 1, .outer_stride = 0, .reciprocal = 0};
    const RowCursor rows(contiguous, 0);
    return GatherTile<E>(work, base / static_cast<int64_t>(sizeof(T)), rows, n, lane);
  }
  LaneSum<E> sum;
#pragma unroll 1
  for (int k0 = 0; k0 * 32 < words; k0 += kBatch) {
    // The one word by which a misaligned tile is longer than a whole number of batches comes with the last
    // batch.
    const bool longer = words > (k0 + kBatch) * 32 && words <= (k0 + kBatch + 1) * 32;
    const int count = longer ? kBatch + 1 : kBatch;
    uint4 x[kBatch + 1], y[kBatch + 1];
#pragma unroll
    for (int k = 0; k <= kBatch; ++k) {
      const int word = (k0 + k) * 32 + lane;
      x[k] = y[k] = {};
      if (word < words && k < count) {
        x[k] = LoadOnce(work.a + start + word * 16);
        y[k] = LoadOnce(work.b + start + word * 16);
      }
    }
#pragma unroll
    for (int k = 0; k <= kBatch; ++k) {
      if ((k0 + k) * 32 >= words || k >= count) continue;
      const int low = skip - ((k0 + k) * 32 + lane) * kN;
      if (low > 0 || low + n < kN) {  // the first and the last word may hold foreign elements
        Keep<T>(x[k], low, low + n);
        Keep<T>(y[k], low, low + n);
      }
      sum.Add(k, x[k], y[k], work.flip);
    }
    if (longer) break;
  }
  return sum.Tree(lane);
}

/// A whole tile at 16-byte boundaries: no word needs a question. While kBatch words are summed the next are
/// on their way.
template <typename E>
__device__ double WarpFullTile(const Work& work, int64_t base, int lane) {
  constexpr int kN = kWord<E>, kWords = kTileElements / (32 * kN), kBatch = 4, kUnroll = kN == 4 ? 4 : 1;
  const char* a = work.a + base + lane * 16;
  const char* b = work.b + base + lane * 16;
  LaneSum<E> sum;
  if constexpr (kN == 8 && !E::kExact) {  // converting takes the registers that a second batch would need
#pragma unroll 1
    for (int k0 = 0; k0 < kWords; k0 += 2 * kBatch) {
      uint4 x[2 * kBatch], y[2 * kBatch];
#pragma unroll
      for (int k = 0; k < 2 * kBatch; ++k) {
        x[k] = LoadOnce(a + (k0 + k) * 512);
        y[k] = LoadOnce(b + (k0 + k) * 512);
      }
#pragma unroll
      for (int k = 0; k < 2 * kBatch; ++k) sum.Add(k, x[k], y[k], work.flip);
    }
    return sum.Tree(lane);
  }
  uint4 x[2][kBatch], y[2][kBatch];
  const auto load = [&](int half, int k0) {
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      x[half][k] = LoadOnce(a + (k0 + k) * 512);
      y[half][k] = LoadOnce(b + (k0 + k) * 512);
    }
  };
  const auto add = [&](int half) {
#pragma unroll
    for (int k = 0; k < kBatch; ++k) sum.Add(k, x[half][k], y[half][k], work.flip);
  };
  load(0, 0);
  load(1, kBatch);
#pragma unroll kUnroll
  for (int k0 = 2 * kBatch; k0 < kWords; k0 += 2 * kBatch) {
    add(0);
    load(0, k0);
    add(1);
    load(1, k0 + kBatch);
  }
  add(0);
  add(1);
  return sum.Tree(lane);
}

}  // namespace tilewire::rmse::cuda
