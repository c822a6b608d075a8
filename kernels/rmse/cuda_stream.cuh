// Columns at one distance from row to row: a thread reads pieces of neighbouring columns down the rows, and
// climbs most of the tree in registers.
#pragma once

#include "kernels/rmse/cuda_columns.cuh"

namespace tilewire::rmse::cuda {

/// A thread owns kV columns. kRounds · (chains of a group) = kBatch pieces of each operand are in flight at
/// once; 2^kLevels groups at most. kMost threads at most, kBlocks blocks a multiprocessor at least.
template <typename E, int kV, bool kVector, int kRounds, int kBatch, int kLevels, int kMost, int kBlocks>
__global__ void __launch_bounds__(kMost, kBlocks)
    StreamKernel(const __grid_constant__ Work work, const __grid_constant__ Columns c) {
  using T = typename E::Type;
  constexpr int kGroup = kBatch / kRounds;
  LetFinishStart();
  extern __shared__ double shared[];
  const int phase = static_cast<int>(threadIdx.x) / c.lanes;
  const int lane = static_cast<int>(threadIdx.x) - phase * c.lanes;
  int64_t window, tile;
  const int64_t item = DivMod(work.block_base + blockIdx.x, c.windows, &window);
  const int64_t outer = c.outer_begin + DivMod(item, c.tiles, &tile);
  tile += work.range.tile_begin;
  const int rows = TileLength(work, tile);
  const int64_t usual = window * c.lanes * kV;
  // Columns 32 apart: a warp has a window of its own, and the last moves back to be full.
  const int64_t own = usual + (kVector ? lane : lane / 32 * 32) * kV;
  const int64_t column = kVector ? own : min(own, c.width - 32 * kV) + lane % 32;
  const bool there = own < c.width && phase < c.phases;
  const int64_t place =
      (AxesOffset(work.layout, false, 1, outer) + column) * static_cast<int64_t>(sizeof(T)) +
      tile * kTileElements * c.stride;
  const int64_t chain_step = c.groups * c.phases * c.stride, round_step = c.period * c.stride;
  double acc[kGroup][kV], held[kLevels + 1][kV];
  [[maybe_unused]] typename std::conditional_t<E::kExact, E, Element<Kind::kU8>>::Sum exact[kV] = {};
  const int shift = __clz(c.groups);
#pragma unroll 1
  for (int g = 0; g < c.groups; ++g) {
    const int chain = Reversed(g, shift);
    const int row = phase + c.phases * chain;
#pragma unroll
    for (int k = 0; k < kGroup; ++k)
#pragma unroll
      for (int v = 0; v < kV; ++v) acc[k][v] = 0;
#pragma unroll 1
    for (int first = row; first < rows || first == row; first += kRounds * c.period) {
      Piece<T, kV, kVector> x[kBatch], y[kBatch];
      const int64_t offset = place + first * c.stride;
#pragma unroll
      for (int k = 0; k < kGroup; ++k)
#pragma unroll
        for (int j = 0; j < kRounds; ++j) {
          const int rev = ReversedOf(k, kGroup);
          const bool in = there && first + rev * c.groups * c.phases + j * c.period < rows;
          const int64_t at = offset + rev * chain_step + j * round_step;
          x[k * kRounds + j].Load(work.a + at, in);
          y[k * kRounds + j].Load(work.b + at, in);
        }
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
#pragma unroll
        for (int j = 0; j < kRounds; ++j)
#pragma unroll
          for (int v = 0; v < kV; ++v) {
            const T p = x[k * kRounds + j].Get(v), q = y[k * kRounds + j].Get(v);
            if constexpr (E::kExact) {
              exact[v] += Square<E>(p, q, work.flip);
            } else {
              acc[k][v] = Accumulate<E>(p, q, work.flip, acc[k][v]);
            }
          }
        if constexpr (kRounds == 1 && !E::kExact) CarryUnrolled(acc, k);
      }
    }
    if constexpr (kRounds > 1 && !E::kExact) {
#pragma unroll
      for (int k = 0; k < kGroup; ++k) CarryUnrolled(acc, k);
    }
    if constexpr (!E::kExact) Carry<kLevels>(g, acc[0], held);
  }
  if constexpr (E::kExact) {
#pragma unroll
    for (int v = 0; v < kV; ++v) acc[0][v] = __ull2double_rn(exact[v]);
  }
  AddPhases(c, phase, lane, acc[0], shared);
  if (phase == 0 && there) {
    const int64_t first = outer * c.width;
    StoreColumns<kV, kVector>(work, first + column, tile, first + own, acc[0]);
  }
}

}  // namespace tilewire::rmse::cuda
