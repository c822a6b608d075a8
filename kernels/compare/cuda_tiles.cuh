// The kernel: a block takes one tile of each of some neighbouring segments, in any layout. A thread owns the
// accumulators of one residue class and climbs their part of the tree alone; then the block climbs the rest.
#pragma once

#include "kernels/compare/cuda_pairs.cuh"
#include "kernels/compare/cuda_places.cuh"
#include "kernels/rmse/cuda_tree.cuh"

namespace tilewire::compare::cuda {

using rmse::cuda::Fold;

/// What a thread gathers of its tile.
template <Kind K, Kept kKept>
struct Gathered {
  double sums[kSums] = {};
  Seen<K> seen;
};

/// Some pairs of a thread: loaded together, so that they are on their way together, and added later.
template <Kind K, int kSome>
struct Batch {
  using T = typename Pair<K>::T;
  T a[kSome], b[kSome];
  template <typename Place>
  __device__ void Load(Place& place) {
#pragma unroll
    for (int s = 0; s < kSome; ++s) {
      a[s] = rmse::cuda::LoadNow(place.a);
      b[s] = rmse::cuda::LoadNow(place.b);
      place.Move();
    }
  }
  /// The first `count`.
  template <typename Place>
  __device__ void Load(Place& place, int count) {
#pragma unroll
    for (int s = 0; s < kSome; ++s) {
      a[s] = b[s] = T{};
      if (s < count) {
        a[s] = rmse::cuda::LoadNow(place.a);
        b[s] = rmse::cuda::LoadNow(place.b);
      }
      place.Move();
    }
  }
};

/// The elements i, i + stride, ... of a tile, `count` of them; leaf l has every kLeaves-th from the l-th on.
template <Kind K, Kept kKept, int kLeaves>
struct Leaves {
  /// Pairs of a batch. Two are on their way at a time.
  static constexpr int kSome = sizeof(typename Pair<K>::T) == 8 ? 4 : 8;
  Accumulator<K> acc[kLeaves] = {};
  Best<K> best;

  /// Those from the e-th on, the first of which goes to leaf e mod kLeaves; of `some` the first `count`.
  template <bool kAll>
  __device__ void Add(const Batch<K, kSome>& some, int half, int e, int count, int i, int stride,
                      uint64_t flip, Seen<K>& seen) {
    int found = -1;
#pragma unroll
    for (int s = 0; s < kSome; ++s) {
      if (!kAll && s >= count) continue;
      const Pair<K> pair(some.a[s], some.b[s], flip);
      acc[(half * kSome + s) % kLeaves].Add(pair);
      if constexpr (kKept == Kept::kAll) {
        if (best.Take(pair)) found = s;
        seen.Count(pair);
      }
    }
    if (kKept == Kept::kAll && found >= 0) best.at = i + (e + found) * stride;
  }

  /// While one batch is added the other is on its way.
  template <typename Place>
  __device__ void AddAll(Place place, int i, int stride, int count, uint64_t flip, Seen<K>& seen) {
    if (count > 0) best.Start(i);
    int e = 0;
    const auto add = [&](const Batch<K, kSome>& some, int half) {
      Add<true>(some, half, e, kSome, i, stride, flip, seen);
      e += kSome;
    };
    if (count >= 2 * kSome) {
      Batch<K, kSome> some[2];
      some[0].Load(place);
      some[1].Load(place);
#pragma unroll 1
      for (int ahead = 4 * kSome; ahead <= count; ahead += 2 * kSome) {
        add(some[0], 0);
        some[0].Load(place);
        add(some[1], 1);
        some[1].Load(place);
      }
      add(some[0], 0);
      add(some[1], 1);
    }
#pragma unroll 1
    for (; e < count; e += 2 * kSome) {
      Batch<K, kSome> some[2];
      some[0].Load(place, count - e);
      some[1].Load(place, count - e - kSome);
      Add<false>(some[0], 0, e, count - e, i, stride, flip, seen);
      Add<false>(some[1], 1, e + kSome, count - e - kSome, i, stride, flip, seen);
    }
    seen.best.Meet(best.key, best.at);
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
/// of leaves in bit-reversed order.
template <Kind K, Kept kKept, int kLeaves, Walk kWalk>
__device__ void GatherTile(const Work& work, int64_t base, int64_t tile, int n, int residue,
                           Gathered<K, kKept>& mine) {
  using T = typename Pair<K>::T;
  constexpr int kLevels = kLeaves == 8 ? 5 : kWalk == Walk::kFar ? 8 : 2;  // of groups: CutOf has no more
  const auto* const a = reinterpret_cast<const T*>(work.a) + base;
  const auto* const b = reinterpret_cast<const T*>(work.b) + base;
  const int stride_log2 = work.cut.stride_log2(), stride = 1 << stride_log2;
  const int groups = 1 << (stride_log2 - work.cut.residues_log2), shift = __clz(groups);
  const int64_t start = tile * rmse::kTileElements;
  double held[kLevels + 1][kSums];
#pragma unroll 1
  for (int group = 0; group < groups; ++group) {
    const int i = residue + (rmse::cuda::Reversed(group, shift) << work.cut.residues_log2);
    const int count = i < n ? (n - i + stride - 1) >> stride_log2 : 0;
    Leaves<K, kKept, kLeaves> leaves;
    if constexpr (kWalk == Walk::kEven) {
      const int64_t first = (start + i) * work.rows.strides[0];
      leaves.AddAll(EvenPlace<T>{a + first, b + first, stride * work.rows.strides[0]}, i, stride, count,
                    work.flip, mine.seen);
    } else if constexpr (kWalk == Walk::kDigits) {
      leaves.AddAll(WalkPlace<T>(work.rows, a, b, start + i), i, stride, count, work.flip, mine.seen);
    } else {
      leaves.AddAll(FarPlace<T>(work.layout, a, b, start + i, stride), i, stride, count, work.flip,
                    mine.seen);
    }
#pragma unroll
    for (int k = 0; k < kSums; ++k) mine.sums[k] = leaves.Total(k);
    rmse::cuda::Carry<kLevels>(group, mine.sums, held);
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
  const bool none = at == kNowhere;
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
    keys[place] = mine.seen.best.Bits();
    ats[place] = mine.seen.best.at;
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
template <Kind K, Kept kKept, int kLeaves, Walk kWalk>
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
    tile = rmse::DivMod(block, windows, &window);
  } else {
    window = rmse::DivMod(block, tiles, &tile);
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
    GatherTile<K, kKept, kLeaves, kWalk>(work, rmse::AxesOffset(work.layout, false, 0, segment), tile, n,
                                         residue, mine);
  if (work.cut.residues_log2 > 0) return MeetInBlock<K, kKept>(work, mine, residue, column, target);
  if (column >= target.left) return;
#pragma unroll
  for (int k = 0; k < kSums; ++k) PutSum(work, k, segment, tile, mine.sums[k]);
  if constexpr (kKept == Kept::kAll) {
    PutExtreme(work, segment, tile, mine.seen.best.Bits(), mine.seen.best.at);
    PutCounts(work, segment, tile, mine.seen.counts);
  }
}

}  // namespace tilewire::compare::cuda
