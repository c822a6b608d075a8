// Columns of whole words whose rows lie at two distances: a thread reads one word of columns down the rows,
// through a queue of its own in shared memory, which keeps more loads in flight than registers could.
#pragma once

#include "kernels/rmse/cuda_copies.cuh"
#include "kernels/rmse/cuda_stream.cuh"

namespace tilewire::rmse::cuda {

/// How rows are cut. A thread owns a word of a window and rows phase + phases · chain + period · round of a
/// tile, period = phases · kChains.
struct Queue {
  Stream cut;             ///< its `stride`: bytes from a row to the next of the inner axis
  int64_t row_pieces;     ///< of all columns
  int64_t outer_stride;   ///< bytes from an index of the outer reduced axis to the next
  uint32_t inner, digit;  ///< extent of the inner axis; rows of a step there
  int64_t step, carry;    ///< bytes of a step; and more where the inner axis ends
};

/// Sums of a thread's columns: chains of accumulators, or for 8- and 16-bit integers sums alone.
template <typename E, int kN, int kChains>
struct QueueSum {
  double acc[kChains][kN] = {};
  using Columns = Piece<typename E::Type, kN, true>;
  __device__ void Add(int chain, const Columns& x, const Columns& y, uint64_t flip) {
#pragma unroll
    for (int v = 0; v < kN; ++v) acc[chain][v] = Accumulate<E>(x.Get(v), y.Get(v), flip, acc[chain][v]);
  }
  __device__ void Get(double (&sum)[kN]) {
#pragma unroll
    for (int s = kChains / 2; s >= 1; s /= 2)
#pragma unroll
      for (int k = 0; k < s; ++k)
#pragma unroll
        for (int v = 0; v < kN; ++v) acc[k][v] = __dadd_rn(acc[k][v], acc[k + s][v]);
#pragma unroll
    for (int v = 0; v < kN; ++v) sum[v] = acc[0][v];
  }
};
template <typename E, int kN, int kChains>
requires(E::kExact) struct QueueSum<E, kN, kChains> {
  typename E::Sum sum[kN] = {};
  using Columns = Piece<typename E::Type, kN, true>;
  __device__ void Add(int, Columns x, Columns y, uint64_t flip) {
    for (uint32_t& part : x.part) part ^= static_cast<uint32_t>(flip);
    for (uint32_t& part : y.part) part ^= static_cast<uint32_t>(flip);
#pragma unroll
    for (int v = 0; v < kN; ++v) sum[v] += Square<E>(x.Get(v), y.Get(v), 0);
  }
  __device__ void Get(double (&result)[kN]) {
#pragma unroll
    for (int v = 0; v < kN; ++v) result[v] = __ull2double_rn(sum[v]);
  }
};

/// Accumulators of a column that one thread holds: 16 with all its columns.
template <typename E, int kPiece>
inline constexpr int kQueueChains = E::kExact ? 8 : 16 * static_cast<int>(sizeof(typename E::Type)) / kPiece;

/// kDepth pieces of each operand in flight. kMost threads at most, kBlocks blocks a multiprocessor at least.
template <typename E, int kPiece, int kDepth, int kMost, int kBlocks>
__global__ void __launch_bounds__(kMost, kBlocks)
    QueueKernel(const __grid_constant__ Work work, const __grid_constant__ Queue c) {
  constexpr int kN = kPiece / static_cast<int>(sizeof(typename E::Type)), kChains = kQueueChains<E, kPiece>;
  LetFinishStart();
  extern __shared__ uint4 queue_words[];
  char* const queue = reinterpret_cast<char*>(queue_words);
  const Stream& cut = c.cut;
  const int phase = static_cast<int>(threadIdx.x) / cut.lanes;
  const int lane = static_cast<int>(threadIdx.x) - phase * cut.lanes;
  int64_t window, tile, within;
  const int64_t item = DivMod(work.block_base + blockIdx.x, cut.windows, &window);
  const int64_t outer = cut.outer_begin + DivMod(item, cut.tiles, &tile);
  tile += work.range.tile_begin;
  const int64_t piece = window * cut.lanes + lane;
  const bool there = piece < c.row_pieces && phase < cut.phases;
  const int rows = there ? TileLength(work, tile) : 0;
  const int64_t full = DivMod(tile * kTileElements + phase, c.inner, &within);
  int64_t offset = AxesOffset(work.layout, false, 1, outer) * static_cast<int64_t>(sizeof(typename E::Type)) +
                   piece * kPiece + full * c.outer_stride + within * cut.stride;
  auto digit = static_cast<uint32_t>(within);
  int row = phase;
  const int half = static_cast<int>(blockDim.x) * kPiece, end = kDepth * 2 * half;
  const auto fetch = [&](int slot) {
    CopyPiece<kPiece>(queue + slot, work.a + offset, row < rows);
    CopyPiece<kPiece>(queue + slot + half, work.b + offset, row < rows);
    EndCopies();
    row += cut.phases;
    offset += c.step;
    digit += c.digit;
    if (digit >= c.inner) {
      digit -= c.inner;
      offset += c.carry;
    }
  };
  int slot = static_cast<int>(threadIdx.x) * kPiece;
#pragma unroll
  for (int d = 0; d < kDepth; ++d) fetch(slot + d * 2 * half);
  QueueSum<E, kN, kChains> sums;
#pragma unroll 1
  for (int first = phase; first < rows; first += cut.period) {
#pragma unroll
    for (int k = 0; k < kChains; ++k) {
      WaitForCopies<kDepth - 1>();
      typename QueueSum<E, kN, kChains>::Columns x, y;
      __builtin_memcpy(x.part, __builtin_assume_aligned(queue + slot, kPiece), kPiece);
      __builtin_memcpy(y.part, __builtin_assume_aligned(queue + slot + half, kPiece), kPiece);
      sums.Add(k, x, y, work.flip);
      fetch(slot);
      slot += 2 * half;
      if (slot >= end) slot -= end;
    }
  }
  double sum[kN];
  sums.Get(sum);
  // The tree over the phases uses the queue's memory.
  WaitForCopies<0>();
  __syncthreads();
  AddPhases(cut, phase, lane, sum, reinterpret_cast<double*>(queue_words));
  if (phase == 0 && there) {
    const int64_t segment = outer * cut.width + piece * kN;
    StoreColumns<kN, true>(work, segment, tile, segment, sum);
  }
}

}  // namespace tilewire::rmse::cuda
