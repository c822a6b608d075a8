// The kernel of contiguous segments of whole tiles and many of them: a warp takes a tile in 16-byte words.
#pragma once

#include "kernels/compare/cuda_tiles.cuh"
#include "kernels/rmse/cuda_tree.cuh"

namespace tilewire::compare::cuda {

/// What a lane gathers of a tile: accumulators in words of the type, kRows words to a round of 256; one
/// where sums are exact in any order.
template <Kind K, Kept kKept>
struct LaneTile {
  using T = typename Pair<K>::T;
  static constexpr int kN = 16 / static_cast<int>(sizeof(T));
  static constexpr bool kExact = rmse::cuda::Element<K>::kExact;
  static constexpr int kRows = kExact ? 1 : static_cast<int>(rmse::kAccumulators) / 32 / kN;
  static constexpr int kHeld = kExact ? 1 : kRows * kN;
  Accumulator<K> acc[kHeld] = {};
  Seen<K> seen;

  /// Element `v` of the lane's k-th word is at k · 32 · kN + lane · kN + v of the tile.
  __device__ void Add(int row, int k, const uint4& x, const uint4& y, int lane, uint64_t flip) {
    int found = -1;
#pragma unroll
    for (int v = 0; v < kN; ++v) {
      const Pair<K> pair(rmse::cuda::At<T>(x, v), rmse::cuda::At<T>(y, v), flip);
      acc[kExact ? 0 : row * kN + v].Add(pair);
      if constexpr (kKept == Kept::kAll) {
        if (seen.best.Take(pair)) found = v;
        seen.Count(pair);
      }
    }
    if (kKept == Kept::kAll && found >= 0) seen.best.at = (k * 32 + lane) * kN + found;
  }

  /// A sum of the warp's tile, in every lane.
  __device__ double Total(int sum, int lane) const {
    double v[kHeld];
#pragma unroll
    for (int h = 0; h < kHeld; ++h) v[h] = acc[h].Get(sum);
    if constexpr (kExact) {  // whole numbers below 2^53
#pragma unroll
      for (int lanes = 16; lanes >= 1; lanes /= 2) v[0] = __dadd_rn(v[0], Shuffled(v[0], lanes));
      return v[0];
    } else {
      double word[kN];
#pragma unroll
      for (int c = 0; c < kN; ++c) {
        double rows[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) rows[r] = v[r * kN + c];
        Fold<kRows>(rows);
        word[c] = rows[0];
      }
      return rmse::cuda::WarpTree(word, lane);
    }
  }

  /// The warp's tile, whole and at 16-byte boundaries. Each word is asked for four words before it is needed;
  /// asking for two pairs of them by turns took 3% longer (f32, f64) to 8% (i16) on an H200.
  __device__ void AddWhole(const char* a, const char* b, int lane, uint64_t flip) {
    constexpr int kWords = static_cast<int>(rmse::kTileElements) / (32 * kN), kAhead = 4;
    static_assert(kWords % kAhead == 0 && kAhead % kRows == 0);
    uint4 x[kAhead], y[kAhead];
    a += lane * 16;
    b += lane * 16;
    seen.best.Start(lane * kN);
    const auto load = [&](int slot, int k) {
      x[slot] = rmse::cuda::LoadOnce(a + k * 512);
      y[slot] = rmse::cuda::LoadOnce(b + k * 512);
    };
    const auto add = [&](int slot, int k) { Add(slot % kRows, k, x[slot], y[slot], lane, flip); };
#pragma unroll
    for (int slot = 0; slot < kAhead; ++slot) load(slot, slot);
#pragma unroll 1
    for (int k = kAhead; k < kWords; k += kAhead) {
#pragma unroll
      for (int slot = 0; slot < kAhead; ++slot) {
        add(slot, k - kAhead + slot);
        load(slot, k + slot);
      }
    }
#pragma unroll
    for (int slot = 0; slot < kAhead; ++slot) add(slot, kWords - kAhead + slot);
  }
};

/// Stores a warp's tile. `total(k)`: its k-th sum, in every lane; `seen`: of each lane.
template <Kind K, Kept kKept, typename TotalOf>
__device__ void PutTile(const Work& work, int64_t segment, int64_t tile, int lane, Seen<K>& seen,
                        const TotalOf& total) {
  double mine = 0;
#pragma unroll
  for (int k = 0; k < kSums; ++k) {
    const double sum = total(k);
    if (lane == k) mine = sum;
  }
  if (lane < kSums) PutSum(work, lane, segment, tile, mine);
  if constexpr (kKept == Kept::kAll) {
    auto& best = seen.best;
    uint32_t counts = seen.counts;
#pragma unroll
    for (int lanes = 16; lanes >= 1; lanes /= 2) {
      const auto other = Shuffled(best.key, lanes);
      best.Meet(other, Shuffled(best.at, lanes));
      counts += Shuffled(counts, lanes);
    }
    if (lane == kSums) PutExtreme(work, segment, tile, best.Bits(), best.at);
    if (lane == kSums + 1) PutCounts(work, segment, tile, counts);
  }
}

/// The n elements of a segment's last tile, one by one. Out of line: few tiles are short.
template <Kind K, Kept kKept>
__device__ __noinline__ void ShortTile(const Work& work, const char* a, const char* b, int64_t segment,
                                       int64_t tile, int n, int lane) {
  using T = typename Pair<K>::T;
  Leaves<K, kKept, 8> leaves;  // at lane + 32 · leaf
  Seen<K> seen;
  const int count = lane < n ? (n - lane + 31) / 32 : 0;
  leaves.AddAll(EvenPlace<T>{reinterpret_cast<const T*>(a) + lane, reinterpret_cast<const T*>(b) + lane, 32},
                lane, 32, count, work.flip, seen);
  PutTile<K, kKept>(work, segment, tile, lane, seen, [&](int sum) {
    double one[1] = {leaves.Total(sum)};
    return rmse::cuda::WarpTree(one, lane);
  });
}

/// A warp takes an item of the range, a tile of a segment.
template <Kind K, Kept kKept>
__global__ void __launch_bounds__(kThreads, 2) WordsKernel(const __grid_constant__ Work work) {
  constexpr int64_t kSize = sizeof(typename Pair<K>::T);
  const rmse::Range& range = work.range;
  const int lane = threadIdx.x % 32;
  const int64_t item = (work.block_base + blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  int64_t tile;
  const int64_t segment = range.segment_begin + rmse::DivMod(item, range.tile_end - range.tile_begin, &tile);
  tile += range.tile_begin;
  if (segment >= range.segment_end) return;
  const int64_t at = (segment * work.layout.elements + tile * rmse::kTileElements) * kSize;
  const int64_t rest = work.layout.elements - tile * rmse::kTileElements;
  if (rest < rmse::kTileElements)
    return ShortTile<K, kKept>(work, work.a + at, work.b + at, segment, tile, static_cast<int>(rest), lane);
  LaneTile<K, kKept> mine;
  mine.AddWhole(work.a + at, work.b + at, lane, work.flip);
  PutTile<K, kKept>(work, segment, tile, lane, mine.seen, [&](int sum) { return mine.Total(sum, lane); });
}

}  // namespace tilewire::compare::cuda
