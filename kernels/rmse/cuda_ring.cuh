// Columns whose rows lie at one distance or two: a thread reads one piece of a row down the rows, through a
// ring of its own in shared memory, which keeps more loads in flight than registers could.
#pragma once

#include "kernels/rmse/cuda_columns.cuh"
#include "kernels/rmse/cuda_copies.cuh"
#include "kernels/rmse/shapes.h"

namespace tilewire::rmse::cuda {

/// Sums of a thread's columns: chains of accumulators, or for 8- and 16-bit integers sums alone.
template <typename E, int kN, int kChains>
struct RingSum {
  double acc[kChains][kN] = {};
  using Columns = Piece<typename E::Type, kN, true>;
  __device__ void Add(int chain, const Columns& x, const Columns& y, uint64_t flip) {
#pragma unroll
    for (int v = 0; v < kN; ++v) acc[chain][v] = Accumulate<E>(x.Get(v), y.Get(v), flip, acc[chain][v]);
  }
  __device__ void Get(double (&sum)[kN]) {
    Fold<kChains>(acc);
#pragma unroll
    for (int v = 0; v < kN; ++v) sum[v] = acc[0][v];
  }
};
template <typename E, int kN, int kChains>
requires(E::kExact) struct RingSum<E, kN, kChains> {
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

/// Which pieces a thread reads: those of a row each at `offset`, `left` / `step` of them, every one `step`
/// rows further down (joined: bytes), of which the tile has `rest` from the thread's first on.
struct RingPlace {
  int64_t offset;
  int left, rest, step;
  uint32_t digit;  ///< of the row in the inner axis
};

/// A block's tile, and the thread's place in it.
struct RingItem {
  int64_t outer, tile, piece;  ///< piece: of a row
  bool there;                  ///< whether the thread has columns
};

template <int kPiece, typename E>
__device__ RingPlace PlaceInColumns(const Work& work, const Ring& c, int phase, int lane, RingItem* item) {
  const Columns& cut = c.cut;
  int64_t window, within;
  const int64_t index = DivMod(work.block_base + blockIdx.x, cut.windows, &window);
  item->outer = cut.outer_begin + DivMod(index, cut.tiles, &item->tile);
  item->tile += work.range.tile_begin;
  item->piece = window * cut.lanes + lane;
  item->there = item->piece < c.row_pieces && phase < cut.phases;
  const int left = item->there ? TileLength(work, item->tile) - phase : 0;
  const int64_t full = DivMod(item->tile * kTileElements + phase, c.inner, &within);
  return {.offset = AxesOffset(work.layout, false, 1, item->outer) *
                        static_cast<int64_t>(sizeof(typename E::Type)) +
                    item->piece * kPiece + full * c.outer_stride + within * cut.stride,
          .left = left,
          .rest = left,
          .step = cut.phases,
          .digit = static_cast<uint32_t>(within)};
}

/// Joined rows, as one stream of words. A tile that begins inside a word is counted from the boundary before
/// it: that rotates the places of all its elements alike, so the same pairs meet, and JoinedColumn finds
/// them.
struct Stretch {
  int64_t begin;    ///< byte of the tile's first element
  int skip, bytes;  ///< from the boundary before it to that, and to the tile's end
};

template <typename E, bool kInside>
__device__ RingPlace PlaceInJoined(const Work& work, const Ring& c, int phase, RingItem* item,
                                   Stretch* tile) {
  const Columns& cut = c.cut;
  const auto thread = static_cast<int>(threadIdx.x);
  item->outer = cut.outer_begin + DivMod(work.block_base + blockIdx.x, cut.tiles, &item->tile);
  item->tile += work.range.tile_begin;
  item->there = phase < cut.phases;
  tile->begin = (item->outer * work.layout.elements + item->tile * kTileElements) * c.row_bytes;
  tile->skip = kInside ? static_cast<int>(reinterpret_cast<uintptr_t>(work.a + tile->begin) % 16) : 0;
  tile->bytes = tile->skip + TileLength(work, item->tile) * c.row_bytes;
  // A group ends where the next phase's begins, so a thread's first word is the one of its index.
  return {.offset = tile->begin - tile->skip + thread * 16,
          .left = item->there ? tile->bytes / 16 * 16 - thread * 16 : 0,
          .rest = item->there ? tile->bytes - thread * 16 : 0,
          .step = cut.phases * cut.lanes * 16,
          .digit = 0};
}

/// Adds word `word` of a stretch, of which only what lies within the tile may be touched.
template <typename E, int kChains>
__device__ void AddRimWord(const Work& work, const Stretch& tile, int word, int chain,
                           RingSum<E, kWord<E>, kChains>& sums) {
  using T = typename E::Type;
  const int64_t first = tile.begin - tile.skip, at = first + word * 16, end = first + tile.bytes;
  const uint4 p = LoadWithin<T>(work.a + at, work.a + tile.begin, work.a + end);
  const uint4 q = LoadWithin<T>(work.b + at, work.b + tile.begin, work.b + end);
  typename RingSum<E, kWord<E>, kChains>::Columns x, y;
  __builtin_memcpy(x.part, &p, 16);
  __builtin_memcpy(y.part, &q, 16);
#pragma unroll
  for (int k = 0; k < kChains; ++k)
    if (k == chain) sums.Add(k, x, y, work.flip);
}

/// The tree over the rows of a group, up to a word's elements: row r of the column is at place `column` +
/// r · width of them all, which are `places` and rotated by so many.
template <int kMost>
__device__ double JoinedColumn(const double* sums, const Ring& c, int column, int places, int rotation) {
  const auto width = static_cast<int>(c.cut.width);
  double sum[kMost];
  int at = column + rotation;
#pragma unroll
  for (int row = 0; row < kMost; ++row) {
    if (at >= places) at -= places;
    sum[row] = row < c.group ? sums[at] : 0.0;
    at += width;
  }
  Fold<kMost>(sum);  // +0 changes no bit
  return sum[0];
}

/// Pieces of kPiece bytes, kDepth of each operand in flight. kMost threads at most, kBlocks blocks a
/// multiprocessor at least.
template <typename E, RingOf kOf, int kPiece, int kDepth, int kMost, int kBlocks>
__global__ void __launch_bounds__(kMost, kBlocks)
    RingKernel(const __grid_constant__ Work work, const __grid_constant__ Ring c) {
  using T = typename E::Type;
  constexpr bool kJoined = kOf != RingOf::kColumns, kInside = kOf == RingOf::kJoinedInside;
  constexpr int kSize = sizeof(T), kN = kPiece / kSize, kChains = kRingChains<kSize, E::kExact, kPiece>;
  LetFinishStart();
  extern __shared__ uint4 ring_words[];
  char* const ring = reinterpret_cast<char*>(ring_words);
  const Columns& cut = c.cut;
  const auto thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int phase = thread / cut.lanes, lane = thread - phase * cut.lanes;
  RingItem item;
  Stretch tile{};
  RingPlace place = kJoined ? PlaceInJoined<E, kInside>(work, c, phase, &item, &tile)
                            : PlaceInColumns<kPiece, E>(work, c, phase, lane, &item);
  const int half = threads * kPiece, end = kDepth * 2 * half;
  const auto fetch = [&](int slot, bool asked = true) {
    CopyPiece<kPiece>(ring + slot, work.a + place.offset, place.left > 0 && asked);
    CopyPiece<kPiece>(ring + slot + half, work.b + place.offset, place.left > 0 && asked);
    EndCopies();
    place.left -= place.step;
    if constexpr (kJoined) {
      place.offset += place.step;
    } else {
      place.offset += c.step;
      place.digit += c.digit;
      if (place.digit >= c.inner) {
        place.digit -= c.inner;
        place.offset += c.carry;
      }
    }
  };
  const bool begins_inside = kInside && tile.skip != 0 && thread == 0;
  int slot = thread * kPiece;
#pragma unroll
  for (int d = 0; d < kDepth; ++d) fetch(slot + d * 2 * half, d > 0 || !begins_inside);
  RingSum<E, kN, kChains> sums;
  if constexpr (kInside)  // the first of its accumulators' chain
    if (begins_inside) AddRimWord<E, kChains>(work, tile, 0, 0, sums);
#pragma unroll 1
  for (; place.rest > 0; place.rest -= kChains * place.step) {
#pragma unroll
    for (int k = 0; k < kChains; ++k) {
      WaitForCopies<kDepth - 1>();
      typename RingSum<E, kN, kChains>::Columns x, y;
      __builtin_memcpy(x.part, __builtin_assume_aligned(ring + slot, kPiece), kPiece);
      __builtin_memcpy(y.part, __builtin_assume_aligned(ring + slot + half, kPiece), kPiece);
      sums.Add(k, x, y, work.flip);
      fetch(slot);
      slot += 2 * half;
      if (slot >= end) slot -= end;
    }
  }
  if constexpr (kJoined) {
    // The tile's last word is not whole, and was not fetched: it is the last of its accumulators' chain.
    const int last = tile.bytes / 16 * 16;
    if (last < tile.bytes && last % place.step == thread * 16 && (last > 0 || !begins_inside))
      AddRimWord<E, kChains>(work, tile, last / 16, last / place.step % kChains, sums);
  }
  double sum[kN];
  sums.Get(sum);
  // The trees use the ring's memory.
  WaitForCopies<0>();
  __syncthreads();
  auto* const shared = reinterpret_cast<double*>(ring_words);
  AddPhases(cut, phase, lane, sum, shared);
  if constexpr (kJoined) {
    if (phase == 0) {
#pragma unroll
      for (int v = 0; v < kN; ++v) shared[lane * kN + v] = sum[v];
    }
    __syncthreads();
    const auto width = static_cast<int>(cut.width);
    for (int column = thread; column < width; column += threads)
      Store(work, item.outer * width + column, item.tile,
            JoinedColumn<kN>(shared, c, column, cut.lanes * kN, tile.skip / kSize));
  } else if (phase == 0 && item.there) {
    const int64_t segment = item.outer * cut.width + item.piece * kN;
    StoreColumns<kN, true>(work, segment, item.tile, segment, sum);
  }
}

}  // namespace tilewire::rmse::cuda
