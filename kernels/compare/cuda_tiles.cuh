// The kernel: a block takes one tile of each of some neighbouring segments, in any layout. A thread owns the
// accumulators of one residue class and climbs their part of the tree alone; then the block climbs the rest.
#pragma once

#include "kernels/compare/cuda_pairs.cuh"

namespace tilewire::compare::cuda {

/// Pairs that a thread loads before it adds them: so many bytes are on their way.
template <Kind K>
inline constexpr int kInFlight = sizeof(typename Pair<K>::T) == 8 ? 8 : 16;

/// v[0] + v[n / 2], v[1] + v[n / 2 + 1], ..., and so on until one is left, in v[0].
template <int n, int kSize>
__device__ void Fold(double (&v)[kSize]) {
  if constexpr (n > 1) {
#pragma unroll
    for (int i = 0; i < n / 2; ++i) v[i] = __dadd_rn(v[i], v[i + n / 2]);
    Fold<n / 2>(v);
  }
}

/// What a thread gathers of its tile.
template <Kind K, Kept kKept>
struct Gathered {
  double sums[kSums] = {};
  Seen<K> seen;
};

/// The elements i, i + stride, ... of a tile, `count` of them; leaf l has every kLeaves-th from the l-th on.
template <Kind K, Kept kKept, int kLeaves>
struct Leaves {
  using T = typename Pair<K>::T;
  Accumulator<K> acc[kLeaves] = {};

  /// kSome from the e-th on: loaded before any is added, so that many are on their way. Those behind the last
  /// are left out, where kWhole there are none.
  template <int kSome, bool kWhole, typename OffsetOf>
  __device__ void AddSome(const T* a, const T* b, const OffsetOf& offset_of, int i, int stride, int e,
                          int count, uint64_t flip, Seen<K>& seen) {
    static_assert(kSome % kLeaves == 0);
    T x[kSome], y[kSome];
#pragma unroll
    for (int s = 0; s < kSome; ++s) {
      x[s] = y[s] = T{};
      if (kWhole || e + s < count) {
        const int64_t at = offset_of(e + s);
        x[s] = rmse::cuda::LoadNow(a + at);
        y[s] = rmse::cuda::LoadNow(b + at);
      }
    }
#pragma unroll
    for (int s = 0; s < kSome; ++s) {
      if (!kWhole && e + s >= count) continue;
      const Pair<K> pair(x[s], y[s], flip);
      acc[s % kLeaves].Add(pair);
      if constexpr (kKept == Kept::kAll) seen.Add(pair, i + (e + s) * stride);
    }
  }

  /// `first`, `step`: of element e the offset is first + e · step.
  __device__ void AddEven(const T* a, const T* b, int64_t first, int64_t step, int i, int stride, int count,
                          uint64_t flip, Seen<K>& seen) {
    const auto offset_of = [&](int e) { return first + e * step; };
    int e = 0;
#pragma unroll 1
    for (; e + kInFlight<K> <= count; e += kInFlight<K>)
      AddSome<kInFlight<K>, true>(a, b, offset_of, i, stride, e, count, flip, seen);
#pragma unroll 1
    for (; e < count; e += 8) AddSome<8, false>(a, b, offset_of, i, stride, e, count, flip, seen);
  }

  /// Where elements lie along several axes.
  __device__ void AddUneven(const T* a, const T* b, const Cursor& cursor, const Work& work, int i, int stride,
                            int count, Seen<K>& seen) {
    const auto offset_of = [&](int e) { return cursor.Offset(work.rows, work.layout, i + e * stride); };
#pragma unroll 1
    for (int e = 0; e < count; e += 8)
      AddSome<8, false>(a, b, offset_of, i, stride, e, count, work.flip, seen);
  }

  __device__ double Total(int sum) const {
    double v[kLeaves];
#pragma unroll
    for (int l = 0; l < kLeaves; ++l) v[l] = acc[l].Get(sum);
    Fold<kLeaves>(v);
    return v[0];
  }
};

/// All accumulators `residue` + residues · m of one tile, in the order in which the tree pairs them: groups
/// of leaves in bit-reversed order, whose sums a stack holds.
template <Kind K, Kept kKept, int kLeaves>
__device__ void GatherTile(const Work& work, int64_t base, int64_t tile, int n, int residue,
                           Gathered<K, kKept>& mine) {
  using T = typename Pair<K>::T;
  constexpr int kMostHeld = 6;
  const auto* const a = reinterpret_cast<const T*>(work.a) + base;
  const auto* const b = reinterpret_cast<const T*>(work.b) + base;
  const int groups_log2 = work.cut.period_log2 - work.cut.residues_log2 - (kLeaves == 8 ? 3 : 0);
  const int stride_log2 = work.cut.period_log2 - (kLeaves == 8 ? 3 : 0), stride = 1 << stride_log2;
  const int64_t start = tile * rmse::kTileElements;
  double held[kSums][kMostHeld];
  int top = 0;
#pragma unroll 1
  for (int group = 0; group < 1 << groups_log2; ++group) {
    const int reversed = groups_log2 == 0 ? 0 : static_cast<int>(__brev(group) >> (32 - groups_log2));
    const int i = residue + (reversed << work.cut.residues_log2);
    const int count = i < n ? (n - i + stride - 1) >> stride_log2 : 0;
    Leaves<K, kKept, kLeaves> leaves;
    if (work.rows.axes <= 1) {
      const int64_t first = (start + i) * work.rows.inner_stride, step = stride * work.rows.inner_stride;
      leaves.AddEven(a, b, first, step, i, stride, count, work.flip, mine.seen);
    } else {
      leaves.AddUneven(a, b, Cursor(work.rows, start), work, i, stride, count, mine.seen);
    }
#pragma unroll
    for (int k = 0; k < kSums; ++k) mine.sums[k] = leaves.Total(k);
    if (groups_log2 == 0) return;
    for (int carry = group; (carry & 1) != 0; carry >>= 1) {
      --top;
#pragma unroll
      for (int k = 0; k < kSums; ++k) mine.sums[k] = __dadd_rn(held[k][top], mine.sums[k]);
    }
#pragma unroll
    for (int k = 0; k < kSums; ++k) held[k][top] = mine.sums[k];
    ++top;
  }
}

/// Where the block's results go.
struct Target {
  int64_t segment, tile;  ///< of column 0
  int64_t left;           ///< columns
};

template <typename Value>
__device__ Value Shuffled(Value value, int lanes) {
  return __shfl_xor_sync(0xffffffffu, value, lanes);
}

__device__ inline void PutSum(const Work& work, int sum, int64_t segment, int64_t tile, double value) {
  if (work.finished) return FinishSum(work.values, work.ending, sum, segment, value);
  double* const plane = sum == 0   ? work.planes.squares
                        : sum == 1 ? work.planes.magnitudes
                                   : work.planes.differences;
  if (plane != nullptr) plane[segment * work.layout.tiles + tile] = value;
}

__device__ inline void PutExtreme(const Work& work, int64_t segment, int64_t tile, uint64_t key, int at) {
  const bool none = at == 0x7fffffff;
  const int64_t index = work.element + tile * rmse::kTileElements + at;
  const Extreme extreme{.key = key, .index = none ? kNoIndex : static_cast<uint64_t>(index)};
  if (work.finished) return FinishExtreme(work.values, work.ending, segment, extreme);
  const int64_t place = segment * work.layout.tiles + tile;
  work.planes.key[place] = extreme.key;
  work.planes.index[place] = extreme.index;
}

__device__ inline void PutCounts(const Work& work, int64_t segment, int64_t tile, uint32_t counts) {
  const uint64_t nans = counts >> 16, unequal = counts & 0xffff;
  if (work.finished) return FinishCounts(work.values, segment, nans, unequal);
  const int64_t place = segment * work.layout.tiles + tile;
  work.planes.nans[place] = nans;
  work.planes.unequal[place] = unequal;
}

/// The last levels of the tree, where residues meet: a warp for each sum, one for the largest, one for the
/// counts. There are at most 32 columns.
template <Kind K, Kept kKept>
__device__ void MeetInBlock(const Work& work, const Gathered<K, kKept>& mine, int residue, int column,
                            const Target& target) {
  constexpr int kEach = kThreads / 32;
  constexpr bool kAll = kKept == Kept::kAll;
  __shared__ double sums[kSums][kThreads];
  __shared__ uint64_t keys[kAll ? kThreads : 1];
  __shared__ int ats[kAll ? kThreads : 1];
  __shared__ uint32_t counts[kAll ? kThreads : 1];
  const int columns = 1 << work.cut.columns_log2(), place = residue * columns + column;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int k = 0; k < kSums; ++k) sums[k][place] = mine.sums[k];
  if constexpr (kAll) {
    keys[place] = Pair<K>::Bits(mine.seen.best);
    ats[place] = mine.seen.at;
    counts[place] = mine.seen.counts;
  }
  __syncthreads();
  const bool puts = lane < columns && lane < target.left;
  if (warp < kSums) {
    double v[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) v[i] = sums[warp][lane + 32 * i];
    Fold<kEach>(v);
    for (int s = 16; s >= columns; s /= 2) v[0] = __dadd_rn(v[0], Shuffled(v[0], s));
    if (puts) PutSum(work, warp, target.segment + lane, target.tile, v[0]);
  } else if (kAll && warp == kSums) {
    uint64_t key = keys[lane];
    int at = ats[lane];
    const auto meet = [&](uint64_t other, int other_at) {
      if (other < key || (other == key && other_at >= at)) return;
      key = other;
      at = other_at;
    };
#pragma unroll
    for (int i = 1; i < kEach; ++i) meet(keys[lane + 32 * i], ats[lane + 32 * i]);
    for (int s = 16; s >= columns; s /= 2) {
      const uint64_t other = Shuffled(static_cast<unsigned long long>(key), s);
      meet(other, Shuffled(at, s));
    }
    if (puts) PutExtreme(work, target.segment + lane, target.tile, key, at);
  } else if (kAll && warp == kSums + 1) {
    uint32_t sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) sum += counts[lane + 32 * i];
    for (int s = 16; s >= columns; s /= 2) sum += Shuffled(sum, s);
    if (puts) PutCounts(work, target.segment + lane, target.tile, sum);
  }
}

/// With one leaf at a time a thread needs few registers.
template <Kind K, Kept kKept, int kLeaves>
__global__ void __launch_bounds__(kThreads, kLeaves == 1 ? 3 : 2)
    TileKernel(const __grid_constant__ Work work) {
  const rmse::Range& range = work.range;
  const int columns_log2 = work.cut.columns_log2(), t = static_cast<int>(threadIdx.x);
  const bool neighbours = work.cut.neighbours;
  const int column = neighbours ? t & ((1 << columns_log2) - 1) : t >> work.cut.residues_log2;
  const int residue = neighbours ? t >> columns_log2 : t & ((1 << work.cut.residues_log2) - 1);
  const int64_t block = work.block_base + blockIdx.x, tiles = range.tile_end - range.tile_begin;
  const int64_t windows = (range.segment_end - range.segment_begin + (1 << columns_log2) - 1) >> columns_log2;
  int64_t window, tile;  // blocks that run together read what lies side by side
  if (neighbours) {
    tile = rmse::cuda::DivMod(block, windows, &window);
  } else {
    window = rmse::cuda::DivMod(block, tiles, &tile);
  }
  tile += range.tile_begin;
  const Target target{.segment = range.segment_begin + (window << columns_log2),
                      .tile = tile,
                      .left = range.segment_end - range.segment_begin - (window << columns_log2)};
  const int64_t rest = work.layout.elements - tile * rmse::kTileElements;
  const int n = static_cast<int>(rest < rmse::kTileElements ? rest : rmse::kTileElements);
  const int64_t segment = target.segment + column;
  Gathered<K, kKept> mine;
  if (column < target.left)
    GatherTile<K, kKept, kLeaves>(work, AxesOffset(work.layout, false, segment), tile, n, residue, mine);
  if (work.cut.residues_log2 > 0) return MeetInBlock<K, kKept>(work, mine, residue, column, target);
  if (column >= target.left) return;
#pragma unroll
  for (int k = 0; k < kSums; ++k) PutSum(work, k, segment, tile, mine.sums[k]);
  if constexpr (kKept == Kept::kAll) {
    PutExtreme(work, segment, tile, Pair<K>::Bits(mine.seen.best), mine.seen.at);
    PutCounts(work, segment, tile, mine.seen.counts);
  }
}

}  // namespace tilewire::compare::cuda
