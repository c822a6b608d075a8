// Narrow columns whose rows are no whole words: as many rows as are whole words are joined (a group), and a
// thread reads one word of that down the groups, through a queue of its own in shared memory.
#pragma once

#include "kernels/rmse/cuda_queue.cuh"

namespace tilewire::rmse::cuda {

/// How rows are cut. A thread owns a word of a group, and groups phase + phases · chain + phases · kChains ·
/// round of a tile.
struct Joined {
  Stream cut;  ///< of which width, tiles, outer_begin, lanes (words of a group) and phases are set
  int group;   ///< rows, a power of two
  int row_bytes;
};

/// The tree over the rows of a group, up to a word's elements, of which sums[row * width] are one column's.
template <int kMost>
__device__ double AddGroup(const double* sums, int group, int width) {
  double sum[kMost];
#pragma unroll
  for (int row = 0; row < kMost; ++row) sum[row] = row < group ? sums[row * width] : 0.0;
  Fold<kMost>(sum);  // +0 changes no bit
  return sum[0];
}

/// Adds the tile's last word, of which only `bytes` bytes are there. It is the last of its accumulators'
/// chain.
template <typename E, int kChains>
__device__ void AddLastWord(QueueSum<E, kWord<E>, kChains>& sums, int chain, const char* a, const char* b,
                            int bytes, uint64_t flip) {
  using T = typename E::Type;
  const uint4 p = LoadWithin<T>(a, a, a + bytes), q = LoadWithin<T>(b, b, b + bytes);
  typename QueueSum<E, kWord<E>, kChains>::Columns x, y;
  __builtin_memcpy(x.part, &p, 16);
  __builtin_memcpy(y.part, &q, 16);
#pragma unroll
  for (int k = 0; k < kChains; ++k)
    if (k == chain) sums.Add(k, x, y, flip);
}

/// kDepth words of each operand in flight; kMost threads at most.
template <typename E, int kDepth, int kMost>
__global__ void __launch_bounds__(kMost)
    JoinedKernel(const __grid_constant__ Work work, const __grid_constant__ Joined c) {
  constexpr int kN = kWord<E>, kChains = kQueueChains<E, 16>;
  LetFinishStart();
  extern __shared__ uint4 queue_words[];
  char* const queue = reinterpret_cast<char*>(queue_words);
  const Stream& cut = c.cut;
  const auto thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int phase = thread / cut.lanes, lane = thread - phase * cut.lanes;
  int64_t tile;
  const int64_t outer = cut.outer_begin + DivMod(work.block_base + blockIdx.x, cut.tiles, &tile);
  tile += work.range.tile_begin;
  const int bytes = TileLength(work, tile) * c.row_bytes, step = cut.phases * cut.lanes * 16;
  const int64_t begin = (outer * work.layout.elements + tile * kTileElements) * c.row_bytes;
  // A group ends where the next phase's begins, so a thread's first word is the one of its index.
  int64_t offset = begin + thread * 16;
  int left = phase < cut.phases ? bytes / 16 * 16 - thread * 16 : 0;
  const int half = threads * 16, end = kDepth * 2 * half;
  const auto fetch = [&](int slot) {
    CopyPiece<16>(queue + slot, work.a + offset, left > 0);
    CopyPiece<16>(queue + slot + half, work.b + offset, left > 0);
    EndCopies();
    left -= step;
    offset += step;
  };
  int slot = thread * 16;
#pragma unroll
  for (int d = 0; d < kDepth; ++d) fetch(slot + d * 2 * half);
  QueueSum<E, kN, kChains> sums;
#pragma unroll 1
  for (int rest = bytes - thread * 16; rest > 0; rest -= kChains * step) {
#pragma unroll
    for (int k = 0; k < kChains; ++k) {
      WaitForCopies<kDepth - 1>();
      typename QueueSum<E, kN, kChains>::Columns x, y;
      __builtin_memcpy(x.part, __builtin_assume_aligned(queue + slot, 16), 16);
      __builtin_memcpy(y.part, __builtin_assume_aligned(queue + slot + half, 16), 16);
      sums.Add(k, x, y, work.flip);
      fetch(slot);
      slot += 2 * half;
      if (slot >= end) slot -= end;
    }
  }
  const int last = bytes / 16 * 16;
  if (last < bytes && last % step == thread * 16)
    AddLastWord<E, kChains>(sums, last / step % kChains, work.a + begin + last, work.b + begin + last,
                            bytes - last, work.flip);
  double sum[kN];
  sums.Get(sum);
  // The trees over phases and rows use the queue's memory.
  WaitForCopies<0>();
  __syncthreads();
  auto* const shared = reinterpret_cast<double*>(queue_words);
  AddPhases(cut, phase, lane, sum, shared);
  if (phase == 0) {
#pragma unroll
    for (int v = 0; v < kN; ++v) shared[lane * kN + v] = sum[v];
  }
  __syncthreads();
  const auto width = static_cast<int>(cut.width);
  for (int column = thread; column < width; column += threads)
    Store(work, outer * width + column, tile, AddGroup<kN>(shared + column, c.group, width));
}

}  // namespace tilewire::rmse::cuda
