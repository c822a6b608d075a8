// Segments in runs (the innermost axis is reduced, an axis further out too), and whatever no other kernel
// takes.
#pragma once

#include "kernels/rmse/cuda_tiles.cuh"

namespace tilewire::rmse::cuda {

inline constexpr int kTinyElements = 32;

/// A thread for each segment of at most kTinyElements.
template <typename E>
__global__ void __launch_bounds__(kBlockThreads) TinyKernel(const __grid_constant__ Work work) {
  using T = typename E::Type;
  const int64_t segment =
      work.range.segment_begin + (work.block_base + blockIdx.x) * kBlockThreads + threadIdx.x;
  if (segment >= work.range.segment_end) return;
  const int64_t base = AxesOffset(work.layout, false, 0, segment);
  const auto* a = reinterpret_cast<const T*>(work.a) + base;
  const auto* b = reinterpret_cast<const T*>(work.b) + base;
  // Eight elements, `groups` apart, are folded at once; the groups come in bit-reversed order, so that equal
  // subtrees meet.
  const RowCursor rows(work.rows, 0);
  const int length = static_cast<int>(work.layout.elements);
  const int groups = length <= 8 ? 1 : length <= 16 ? 2 : 4;
  double held[2], sum = 0;
#pragma unroll 1
  for (int q = 0; q < groups; ++q) {
    const int first = groups == 4 ? (q & 1) * 2 + q / 2 : q;
    double square[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int i = first + groups * k;
      square[k] = 0;
      if (i < length) {
        const int64_t at = rows.Offset(work.rows, work.layout, i);
        square[k] = Accumulate<E>(a[at], b[at], work.flip, 0.0);
      }
    }
    Fold<8>(square);
    sum = square[0];
    if (q == 0) held[0] = sum;
    if (q == 2) held[1] = sum;
    if (q == 1) sum = held[0] = __dadd_rn(held[0], sum);
    if (q == 3) sum = __dadd_rn(held[0], __dadd_rn(held[1], sum));
  }
  Store(work, segment, 0, sum);
}

/// A warp's tile, of elements that the rows of the layout hold.
struct WarpItem {
  int64_t segment, tile, base;  ///< base: elements to the segment's first
  int n;
  __device__ explicit WarpItem(const Work& work) {
    const int64_t item = (work.block_base + blockIdx.x) * kWarps + threadIdx.x / 32;
    segment = work.range.segment_begin + DivMod(item, work.range.tile_end - work.range.tile_begin, &tile);
    tile += work.range.tile_begin;
    n = TileLength(work, tile);
    base = segment < work.range.segment_end ? AxesOffset(work.layout, false, 0, segment) : 0;
  }
};

/// Runs are whole words at 16-byte boundaries.
template <typename E>
__global__ void __launch_bounds__(kBlockThreads, 3) RunKernel(const __grid_constant__ Work work) {
  constexpr int kN = kWord<E>, kBatch = 4;
  constexpr int64_t kSize = sizeof(typename E::Type);
  const int lane = threadIdx.x % 32;
  const WarpItem item(work);
  if (item.segment >= work.range.segment_end) return;
  const RowCursor rows(work.rows, item.tile * kTileElements);
  LaneSum<E> sum;
#pragma unroll 1
  for (int k0 = 0; k0 * 32 * kN < item.n; k0 += kBatch) {
    uint4 x[kBatch], y[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const int j = ((k0 + k) * 32 + lane) * kN;
      x[k] = y[k] = {};
      if (j < item.n) {
        const int64_t at = (item.base + rows.Offset(work.rows, work.layout, j)) * kSize;
        x[k] = LoadOnce(work.a + at);
        y[k] = LoadOnce(work.b + at);
      }
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) sum.Add(k, x[k], y[k], work.flip);
  }
  const double total = sum.Tree(lane);
  if (lane == 0) Store(work, item.segment, item.tile, total);
}

/// The word that begins with a segment's element j: where its run ends, the next one's first elements follow.
struct RunWord {
  Straddle here, next;
  template <typename T>
  __device__ uint4 Get(int left) const {
    constexpr int kN = 16 / sizeof(T);
    uint4 word = here.template Get<T>();
    if (left >= kN) return word;
    uint4 more = next.template Get<T>();
    Keep<T>(word, 0, left);
    Keep<T>(more, left, kN);
    return {word.x | more.x, word.y | more.y, word.z | more.z, word.w | more.w};
  }
};

/// Adds words k0 + k1 ... k0 + k1 + kBatch - 1 of a lane. k1 is a constant, and k0 a multiple of a round's
/// words.
template <typename E, int kBatch>
__device__ void AddRunWords(const Work& work, const WarpItem& item, const RowCursor& rows, int k0, int k1,
                            int lane, LaneSum<E>& sum) {
  using T = typename E::Type;
  constexpr int kN = kWord<E>;
  constexpr int64_t kSize = sizeof(T);
  RunWord x[kBatch], y[kBatch];
  int left[kBatch];
#pragma unroll
  for (int k = 0; k < kBatch; ++k) {
    const int j = ((k0 + k1 + k) * 32 + lane) * kN;
    x[k] = y[k] = {};
    left[k] = kN;
    if (j >= item.n) continue;
    left[k] = static_cast<int>(min(rows.Left(work.rows, j), int64_t{kN}));
    const int64_t at = (item.base + rows.Offset(work.rows, work.layout, j)) * kSize;
    x[k].here.Load(work.a + at);
    y[k].here.Load(work.b + at);
    if (left[k] < kN && j + left[k] < item.n) {
      const int64_t next = (item.base + rows.Offset(work.rows, work.layout, j + left[k]) - left[k]) * kSize;
      x[k].next.Load(work.a + next);
      y[k].next.Load(work.b + next);
    }
  }
#pragma unroll
  for (int k = 0; k < kBatch; ++k) {
    const int rest = item.n - ((k0 + k1 + k) * 32 + lane) * kN;
    uint4 word_x = x[k].template Get<T>(left[k]), word_y = y[k].template Get<T>(left[k]);
    if (rest < kN) {
      Keep<T>(word_x, 0, rest);
      Keep<T>(word_y, 0, rest);
    }
    sum.Add(k1 + k, word_x, word_y, work.flip);
  }
}

/// Runs of at least a word, wherever they begin; the operands may be misaligned differently.
template <typename E>
__global__ void __launch_bounds__(kBlockThreads, 2) StraddleKernel(const __grid_constant__ Work work) {
  constexpr int kN = kWord<E>, kBatch = 2, kStep = LaneSum<E>::kRows > kBatch ? LaneSum<E>::kRows : kBatch;
  constexpr int64_t kSize = sizeof(typename E::Type);
  const int lane = threadIdx.x % 32;
  const WarpItem item(work);
  if (item.segment >= work.range.segment_end) return;
  const RowCursor rows(work.rows, item.tile * kTileElements);
  const int64_t first = (item.base + rows.Offset(work.rows, work.layout, 0)) * kSize;
  const int64_t last = (item.base + rows.Offset(work.rows, work.layout, item.n - 1)) * kSize;
  double total;
  if (first < work.range.byte_begin + 16 || last + 48 > work.range.byte_end) {
    total = GatherTile<E>(work, item.base, rows, item.n, lane);
  } else {
    LaneSum<E> sum;
#pragma unroll 1
    for (int k0 = 0; k0 * 32 * kN < item.n; k0 += kStep) {
#pragma unroll
      for (int k1 = 0; k1 < kStep; k1 += kBatch) AddRunWords<E, kBatch>(work, item, rows, k0, k1, lane, sum);
    }
    total = sum.Tree(lane);
  }
  if (lane == 0) Store(work, item.segment, item.tile, total);
}

/// Element by element: what no other kernel takes.
template <typename E>
__global__ void __launch_bounds__(kBlockThreads) GatherKernel(const __grid_constant__ Work work) {
  const int lane = threadIdx.x % 32;
  const WarpItem item(work);
  if (item.segment >= work.range.segment_end) return;
  const RowCursor rows(work.rows, item.tile * kTileElements);
  const double total = GatherTile<E>(work, item.base, rows, item.n, lane);
  if (lane == 0) Store(work, item.segment, item.tile, total);
}

}  // namespace tilewire::rmse::cuda
