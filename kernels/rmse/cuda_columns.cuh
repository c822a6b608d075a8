// Segments that lie across memory: the innermost axis is a batch axis (columns), or a short power of two of a
// segment's elements follows it (runs).
#pragma once

#include "kernels/rmse/cuda_work.cuh"

namespace tilewire::rmse::cuda {

inline constexpr int kColumnThreads = 512;  // at most
/// Threads of a block where windows may be chosen: enough for eight words of a row.
template <typename E>
inline constexpr int kColumnUsual = E::kExact ? 128 : 256;
/// Accumulators of a column that one thread sums one after the other; what it holds meanwhile must fit its
/// registers.
template <typename E>
inline constexpr int kMaxChains = E::kExact       ? 16
                                  : kWord<E> == 8 ? 4
                                                  : 8;

/// How a thread finds its columns in rows that do not start at 16-byte boundaries.
enum class Rows {
  kFlat,      ///< rows lie side by side: a slab's words are counted from the boundary before it, across rows
  kRotated,   ///< each row's words are counted from the boundary before it; what they hold is sorted at the
              ///< end
  kStraddle,  ///< words are counted from the columns; each is put together from the two that it lies in
};

/// How columns are cut. A row holds `width` elements: `run` of each of width / run segments. A tile is 4096 /
/// run rows, and rows `period` = 256 / run apart meet in the same accumulator (fewer where segments are
/// short).
///
/// A slab is `slab` = period / chains rows. A thread of an item owns one word of the slab and visits it in
/// rows r + chain·slab + round·period. It holds the same columns each time: slabs are whole words, but for
/// kStraddle.
struct Columns {
  int64_t width, windows, tiles, items;  ///< items: (outer batch index, tile), outer_count · tiles
  int64_t outer_begin;
  RowMap map;
  int run_log2, run, period, chains, slab, rows_per_tile;
  int words, threads;         ///< of a row of a window (of a slab, when flat); of an item
  int window_columns, pitch;  ///< columns of a window, of a row in shared memory
  int per_block;              ///< items of a block
  Rows rows;
};

/// Sums of kN columns over chains in the tree's order: chain sums arrive in bit-reversed order, so equal
/// subtrees meet like the carries of a binary counter.
template <typename E>
struct ColumnSum {
  static constexpr int kN = kWord<E>;
  static constexpr int kLevels = kMaxChains<E> == 8 ? 3 : 2;
  double acc[kN], held[kLevels][kN];
  __device__ void Begin() {
#pragma unroll
    for (int v = 0; v < kN; ++v) acc[v] = 0;
  }
  __device__ void Add(const uint4& x, const uint4& y, uint64_t flip) {
    using T = typename E::Type;
#pragma unroll
    for (int v = 0; v < kN; ++v) acc[v] = Accumulate<E>(At<T>(x, v), At<T>(y, v), flip, acc[v]);
  }
  /// After chain number `q` in visiting order.
  __device__ void End(int q) {
    bool carry = true;
#pragma unroll
    for (int level = 0; level < kLevels; ++level) {
      if (!carry) continue;
      if ((q >> level & 1) == 0) {
#pragma unroll
        for (int v = 0; v < kN; ++v) held[level][v] = acc[v];
        carry = false;
      } else {
#pragma unroll
        for (int v = 0; v < kN; ++v) acc[v] = __dadd_rn(held[level][v], acc[v]);
      }
    }
  }
  __device__ double Get(int v) const {
    return acc[v];
  }
};
/// Exact in any order: one integer a column.
template <typename E>
requires(E::kExact) struct ColumnSum<E> {
  static constexpr int kN = kWord<E>;
  typename E::Sum sum[kN] = {};
  __device__ void Begin() {}
  __device__ void Add(const uint4& x, const uint4& y, uint64_t flip) {
    using T = typename E::Type;
    const auto mask = static_cast<uint32_t>(flip);
    const uint4 a = {x.x ^ mask, x.y ^ mask, x.z ^ mask, x.w ^ mask};
    const uint4 b = {y.x ^ mask, y.y ^ mask, y.z ^ mask, y.w ^ mask};
#pragma unroll
    for (int v = 0; v < kN; ++v) sum[v] += Square<E>(At<T>(a, v), At<T>(b, v), 0);
  }
  __device__ void End(int) {}
  __device__ double Get(int v) const {
    return __ull2double_rn(sum[v]);
  }
};

/// Where one thread's words lie.
struct ColumnPlace {
  int64_t
      origin;   ///< byte offset of its columns in the tile's row 0 (of its word in the first slab, when flat)
  int at, end;  ///< words exist while at + chain·chain_step + round·step < end: rows, or elements when flat
  int step, chain_step;
  int low, high;  ///< flat: the tile's elements
};

/// Sums the thread's words into `sum`. kRim: they may reach beyond the arrays.
template <typename E, bool kStraddle, bool kRim>
__device__ void SumColumns(const Work& work, const Columns& c, const RowCursor& rows,
                           const ColumnPlace& place, ColumnSum<E>& sum) {
  using T = typename E::Type;
  constexpr int64_t kSize = sizeof(T);
  constexpr int kBatch = kRim ? 1 : kStraddle ? 2 : 4;
  const char *a_begin = work.a + work.range.byte_begin, *a_end = work.a + work.range.byte_end;
  const char *b_begin = work.b + work.range.byte_begin, *b_end = work.b + work.range.byte_end;
  const int shift = __clz(c.chains);  // 31 - log2: a reversed chain number's place
  const int rounds = (place.end + place.step - 1) / place.step;
  int q = 0, round = 0;
  const auto here_of = [&](int chain_number, int round_number) {
    const int chain = static_cast<int>(__brev(static_cast<unsigned>(chain_number)) >> 1 >> shift);
    return place.at + chain * place.chain_step + round_number * place.step;
  };
#pragma unroll 1
  while (q < c.chains) {
    uint4 x[kBatch], y[kBatch];
    Straddle s[kBatch], t[kBatch];
    int here[kBatch];
    int next_q = q, next_round = round;
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      here[k] = next_q < c.chains ? here_of(next_q, next_round) : place.end;
      const int64_t offset = c.rows == Rows::kFlat
                                 ? place.origin + (here[k] - place.at) * kSize
                                 : place.origin + rows.Offset(c.map, work.layout, here[k]) * kSize;
      x[k] = y[k] = {};
      if constexpr (kStraddle) s[k] = t[k] = {};
      if (here[k] < place.end) {
        if constexpr (kRim && kStraddle) {
          x[k] = LoadRim<sizeof(T)>(work.a + offset, a_begin, a_end);
          y[k] = LoadRim<sizeof(T)>(work.b + offset, b_begin, b_end);
        } else if constexpr (kRim) {
          x[k] = LoadWithin<T>(work.a + offset, a_begin, a_end);
          y[k] = LoadWithin<T>(work.b + offset, b_begin, b_end);
        } else if constexpr (kStraddle) {
          s[k].Load(work.a + offset);
          t[k].Load(work.b + offset);
        } else {
          x[k] = LoadOnce(work.a + offset);
          y[k] = LoadOnce(work.b + offset);
        }
      }
      if (++next_round == rounds) next_round = 0, ++next_q;
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      if (q >= c.chains) continue;
      if constexpr (kStraddle && !kRim) {
        x[k] = s[k].template Get<T>();
        y[k] = t[k].template Get<T>();
      }
      if (c.rows == Rows::kFlat && here[k] < place.end &&
          (here[k] < place.low || here[k] + kWord < E >> place.high)) {
        Keep<T>(x[k], place.low - here[k], place.high - here[k]);
        Keep<T>(y[k], place.low - here[k], place.high - here[k]);
      }
      if (round == 0) sum.Begin();
      sum.Add(x[k], y[k], work.flip);
      if (++round == rounds) {
        sum.End(q);
        round = 0;
        ++q;
      }
    }
  }
}

template <typename E, bool kStraddle>
__device__ void SumColumnsAnywhere(const Work& work, const Columns& c, const RowCursor& rows,
                                   const ColumnPlace& place, bool near_rim, ColumnSum<E>& sum) {
  if (near_rim) {
    SumColumns<E, kStraddle, true>(work, c, rows, place, sum);
  } else {
    SumColumns<E, kStraddle, false>(work, c, rows, place, sum);
  }
}

/// The tile of an item that a thread works on.
struct ColumnItem {
  int64_t outer, tile, first_column;
  int64_t base;       ///< byte offset of the outer index's first element
  int rows, columns;  ///< of the tile in the window
  int q, sums;        ///< the thread in its item, and the item's first place in shared memory
  bool exists;
  __device__ ColumnItem(const Work& work, const Columns& c, int64_t size) {
    const int z = static_cast<int>(threadIdx.x) / c.threads;
    q = static_cast<int>(threadIdx.x) - z * c.threads;
    int64_t window;
    const int64_t item = DivMod(work.block_base + blockIdx.x, c.windows, &window) * c.per_block + z;
    exists = z < c.per_block && item < c.items;
    outer = c.outer_begin + DivMod(exists ? item : 0, c.tiles, &tile);
    tile += work.range.tile_begin;
    rows = TileLength(work, tile) >> c.run_log2;
    first_column = window * c.window_columns;
    columns = static_cast<int>(min(c.width - first_column, static_cast<int64_t>(c.window_columns)));
    base = AxesOffset(work.layout, false, 1 + (c.run > 1), outer) * size;
    sums = z * c.slab * c.pitch;
  }
};

/// Sums the thread's word over the tile into shared memory. Returns by how many places a flat slab is
/// rotated.
template <typename E, bool kStraddle, typename Sums>
__device__ int SumItem(const Work& work, const Columns& c, const ColumnItem& item, const Sums& sums) {
  constexpr int kN = kWord<E>;
  constexpr int64_t kSize = sizeof(typename E::Type);
  const RowCursor rows(c.map, item.tile * c.rows_per_tile);
  const int64_t tile_base = item.base + rows.Offset(c.map, work.layout, 0) * kSize;
  const bool flat = c.rows == Rows::kFlat;
  ColumnPlace place;
  int skip = 0, column = 0, slot = 0;
  if (flat) {
    skip = Misalignment<E>(work.a + tile_base);
    const int width = c.pitch, high = skip + item.rows * width;
    slot = item.q * kN;
    place = {tile_base + (slot - skip) * kSize, slot, high, c.period * width, c.slab * width, skip, high};
  } else {
    const int row = item.q / c.words;
    if (c.rows == Rows::kRotated)
      skip = Misalignment<E>(work.a + item.base + rows.Offset(c.map, work.layout, row) * kSize);
    column = (item.q - row * c.words) * kN - skip;
    slot = row * c.pitch;
    place = {item.base + (item.first_column + column) * kSize, row, item.rows, c.period, c.slab, 0, 0};
    if (column >= item.columns || column + kN <= 0) return 0;
  }
  // Rows ascend in memory, so only a tile's first and last words can reach beyond the arrays.
  const int64_t last = item.base + (rows.Offset(c.map, work.layout, item.rows - 1) + c.width) * kSize;
  const bool whole_words = c.rows == Rows::kRotated && skip == 0 && c.width * kSize % 16 == 0;
  ColumnSum<E> sum;
  if (!whole_words && (tile_base < work.range.byte_begin + 16 || last + 16 > work.range.byte_end)) {
    SumColumns<E, kStraddle, true>(work, c, rows, place, sum);
  } else {
    SumColumns<E, kStraddle, false>(work, c, rows, place, sum);
  }
#pragma unroll
  for (int v = 0; v < kN; ++v)
    if (flat || (column + v >= 0 && column + v < item.columns)) sums(slot + column + v) = sum.Get(v);
  return flat ? skip % c.pitch : 0;
}

/// kStraddle: c.rows is Rows::kStraddle.
template <typename E, bool kStraddle>
__global__ void __launch_bounds__(kColumnThreads)
    ColumnKernel(const __grid_constant__ Work work, const __grid_constant__ Columns c) {
  LetFinishStart();
  extern __shared__ double shared[];
  const ColumnItem item(work, c, sizeof(typename E::Type));
  // A place is skipped after each sixteen, so that threads that store kN sums each meet different banks.
  const auto sums = [&](int p) -> double& { return shared[item.sums + p + (item.sums + p) / 16]; };
  const int rotation = item.exists ? SumItem<E, kStraddle>(work, c, item, sums) : 0;
  for (int s = c.slab / 2; s >= 1; s /= 2) {
    __syncthreads();
    if (item.exists)
      for (int p = item.q; p < s * c.pitch; p += c.threads)
        sums(p) = __dadd_rn(sums(p), sums(p + s * c.pitch));
  }
  // One row is left; when flat it is rotated.
  const auto at = [&](int p) -> double& {
    return sums(p + rotation < c.pitch ? p + rotation : p + rotation - c.pitch);
  };
  for (int s = c.run / 2; s >= 1; s /= 2) {
    __syncthreads();
    if (!item.exists) continue;
    for (int p = item.q; p < item.columns; p += c.threads)
      if (p % c.run < s) at(p) = __dadd_rn(at(p), at(p + s));
  }
  __syncthreads();
  if (!item.exists) return;
  const int64_t first = item.outer * (c.width >> c.run_log2) + (item.first_column >> c.run_log2);
  for (int p = item.q; p < item.columns >> c.run_log2; p += c.threads) {
    const int64_t segment = first + p;
    if (segment >= work.range.segment_begin && segment < work.range.segment_end)
      Store(work, segment, item.tile, at(p << c.run_log2));
  }
}

}  // namespace tilewire::rmse::cuda
