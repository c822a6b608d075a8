// Tiles whose elements lie side by side: a warp for each, or a block where there are few.
#pragma once

#include "kernels/rmse/cuda_lanes.cuh"

namespace tilewire::rmse::cuda {

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

/// Contiguous segments: a warp for each work.batch neighbouring tiles of one.
template <typename E>
__global__ void __launch_bounds__(kBlockThreads, 2) WarpKernel(const __grid_constant__ Work work) {
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

/// Contiguous segments of which the range has one tile each: a warp for work.batch neighbouring segments.
/// Their results are finished together, a lane for each. Few words leave registers for more warps: then
/// kBatch is 4.
template <typename E, int kBatch>
__global__ void __launch_bounds__(kBlockThreads, kBatch == 4 ? 3 : 2)
    SegmentKernel(const __grid_constant__ Work work) {
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

/// Few contiguous tiles: a block for each, a thread for each accumulator, all loads in flight at once.
template <typename E>
__global__ void __launch_bounds__(kBlockThreads, 4) BlockKernel(const __grid_constant__ Work work) {
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
  double part[kWarps];
#pragma unroll
  for (int w = 0; w < kWarps; ++w) part[w] = sums[w * 32 + t];
  Fold<kWarps>(part);
  double one[1] = {part[0]};
  const double sum = WarpTree(one, t);
  if (t == 0) Store(work, segment, tile, sum);
}

}  // namespace tilewire::rmse::cuda
