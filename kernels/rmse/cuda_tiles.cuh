// Tiles whose elements lie side by side: a warp for each, or a block where there are few.
#pragma once

#include "kernels/rmse/cuda_lanes.cuh"
#include "kernels/rmse/shapes.h"

namespace tilewire::rmse::cuda {

/// A warp's sum of the n ≤ 4096 elements at byte offset `base` of both operands, one by one: where whole
/// words would reach beyond the arrays.
template <typename E>
__device__ __noinline__ double RimTile(const Work& work, int64_t base, int n, int lane) {
  using T = typename E::Type;
  const auto* a = reinterpret_cast<const T*>(work.a + base);
  const auto* b = reinterpret_cast<const T*>(work.b + base);
  double acc[8] = {};
  for (int round = lane; round < n; round += static_cast<int>(kAccumulators)) {
    T x[8] = {}, y[8] = {};
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const int j = round + c * 32;
      if (j < n) x[c] = a[j], y[c] = b[j];
    }
#pragma unroll
    for (int c = 0; c < 8; ++c) acc[c] = Accumulate<E>(x[c], y[c], work.flip, acc[c]);
  }
  Fold<8>(acc);
  double one[1] = {acc[0]};
  return WarpTree(one, lane);
}

/// A warp's sum of the n ≤ 4096 elements at byte offset `base` of both operands, which are misaligned alike.
/// Words are counted from the 16-byte boundary before; GroupKernel says why the rotation changes nothing.
template <typename E, int kBatch>
__device__ double WarpTile(const Work& work, int64_t base, int n, int lane) {
  using T = typename E::Type;
  constexpr int kN = kWord<E>;
  const int skip = Misalignment<E>(work.a + base);
  const int64_t start = base - skip * static_cast<int64_t>(sizeof(T));
  const int words = (skip + n + kN - 1) / kN;
  if (start < work.range.byte_begin ||
      start + words * 16 > work.range.byte_end) {  // at the rim of the arrays
    return RimTile<E>(work, base, n, lane);
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

/// Neighbouring tiles of a segment: lane u of a warp holds the sum of its u-th, +0 where the segment has no
/// such tile.
__device__ inline void StoreTiles(const Work& work, int64_t segment, int64_t tile, double mine, int count,
                                  int lane) {
  __shared__ double sums[kWarps];
  if (work.combine == Combine::kNone) {
    if (lane < count) Store(work, segment, tile + lane, mine);
    return;
  }
  for (int lanes = 1; lanes < work.batch; lanes *= 2)
    mine = __dadd_rn(mine, __shfl_xor_sync(0xffffffffu, mine, lanes));
  if (work.combine == Combine::kWarp) {
    if (lane == 0 && count > 0) Store(work, segment, tile / work.batch, mine);
    return;
  }
  if (lane == 0) sums[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  double part[kWarps];
#pragma unroll
  for (int w = 0; w < kWarps; ++w) part[w] = sums[w];
  FoldPairs<kWarps>(part);
  Store(work, segment, tile / (work.batch * kWarps), part[0]);
}

/// A warp's work.batch neighbouring tiles of a segment.
template <typename E>
__device__ void SumTilesOfWarp(const Work& work) {
  constexpr int64_t kSize = sizeof(typename E::Type);
  const Range& range = work.range;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t block = work.block_base + blockIdx.x, tiles = range.tile_end - range.tile_begin;
  int64_t group, segment;
  if (work.combine == Combine::kBlock) {
    segment = DivMod(block, (tiles + work.batch * kWarps - 1) / (work.batch * kWarps), &group);
    group = group * kWarps + warp;
  } else {
    segment = DivMod(block * kWarps + warp, (tiles + work.batch - 1) / work.batch, &group);
  }
  segment += range.segment_begin;
  const int64_t first = range.tile_begin + group * work.batch, rest = range.tile_end - first;
  const int count =
      segment >= range.segment_end ? 0 : static_cast<int>(max(min(rest, int64_t{work.batch}), int64_t{0}));
  double mine = 0;
  for (int u = 0; u < count; ++u) {
    const int64_t base = (segment * work.layout.elements + (first + u) * kTileElements) * kSize;
    const int n = TileLength(work, first + u);
    const bool simple = n == kTileElements && Misalignment<E>(work.a + base) == 0;
    const double sum = simple ? WarpFullTile<E>(work, base, lane) : WarpTile<E, 8>(work, base, n, lane);
    if (lane == u) mine = sum;
  }
  LetFinishStart();
  StoreTiles(work, segment, first, mine, count, lane);
}

/// A warp's work.batch neighbouring segments, of which the range has one tile each. Their results are
/// finished together, a lane for each.
template <typename E, int kBatch>
__device__ void SumSegmentsOfWarp(const Work& work) {
  const Range& range = work.range;
  const int lane = threadIdx.x % 32;
  const int64_t warp = (work.block_base + blockIdx.x) * kWarps + threadIdx.x / 32;
  const int64_t first = range.segment_begin + warp * work.batch, tile = range.tile_begin;
  const int n = TileLength(work, tile);
  double mine = 0;
  for (int u = 0; u < work.batch && first + u < range.segment_end; ++u) {
    const int64_t base = ((first + u) * work.layout.elements + tile * kTileElements) *
                         static_cast<int64_t>(sizeof(typename E::Type));
    const double sum = WarpTile<E, kBatch>(work, base, n, lane);
    if (lane == u) mine = sum;
  }
  if (lane < work.batch && first + lane < range.segment_end) Store(work, first + lane, tile, mine);
}

/// A block's tile: a thread for each accumulator, all loads in flight at once.
template <typename E>
__device__ void SumTileOfBlock(const Work& work) {
  using T = typename E::Type;
  constexpr int kRounds = static_cast<int>(kTileElements / kAccumulators);
  __shared__ double sums[kAccumulators];
  int64_t tile;
  const int64_t tiles = work.range.tile_end - work.range.tile_begin;
  const int64_t segment = work.range.segment_begin + DivMod(work.block_base + blockIdx.x, tiles, &tile);
  tile += work.range.tile_begin;
  const int n = TileLength(work, tile), t = threadIdx.x;
  const int64_t base = segment * work.layout.elements + tile * kTileElements + t;
  const auto* a = reinterpret_cast<const T*>(work.a) + base;
  const auto* b = reinterpret_cast<const T*>(work.b) + base;
  double acc = 0;
  if (n == kTileElements) {
    T x[kRounds], y[kRounds];
#pragma unroll
    for (int k = 0; k < kRounds; ++k)
      x[k] = LoadNow(a + k * kAccumulators), y[k] = LoadNow(b + k * kAccumulators);
#pragma unroll
    for (int k = 0; k < kRounds; ++k) acc = Accumulate<E>(x[k], y[k], work.flip, acc);
  } else {
    constexpr int kBatch = 4;
#pragma unroll 1
    for (int k0 = 0; k0 * static_cast<int>(kAccumulators) < n; k0 += kBatch) {
      T x[kBatch] = {}, y[kBatch] = {};
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        if ((k0 + k) * static_cast<int>(kAccumulators) + t >= n) continue;
        x[k] = LoadNow(a + (k0 + k) * kAccumulators);
        y[k] = LoadNow(b + (k0 + k) * kAccumulators);
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) acc = Accumulate<E>(x[k], y[k], work.flip, acc);
    }
  }
  LetFinishStart();
  sums[t] = acc;
  __syncthreads();
  if (t >= 32) return;
  const double sum = WarpPhases<kBlockThreads>(sums, t);
  if (t == 0) Store(work, segment, tile, sum);
}

/// Contiguous segments whose operands are misaligned alike.
template <typename E, TilesBy kBy>
__global__ void __launch_bounds__(kBlockThreads, kBy == TilesBy::kBlocks          ? 4
                                                 : kBy == TilesBy::kShortSegments ? 3
                                                                                  : 2)
    TilesKernel(const __grid_constant__ Work work) {
  if constexpr (kBy == TilesBy::kBlocks) {
    SumTileOfBlock<E>(work);
  } else if constexpr (kBy == TilesBy::kTiles) {
    SumTilesOfWarp<E>(work);
  } else {
    SumSegmentsOfWarp<E, kBy == TilesBy::kSegments ? 8 : 4>(work);
  }
}

}  // namespace tilewire::rmse::cuda
