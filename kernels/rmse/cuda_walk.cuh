// Segments in runs, and whatever no other kernel takes: a thread walks over some of a segment's units,
// wherever runs begin and end.
#pragma once

#include "kernels/rmse/cuda_lanes.cuh"
#include "kernels/rmse/shapes.h"

namespace tilewire::rmse::cuda {

/// The element at `p` if `there`, else 0; in this place of the program, and without a branch.
template <typename T>
__device__ T LoadIf(const char* p, bool there) {
  const int yes = there;
  T value;
  if constexpr (sizeof(T) == 8) {
    uint64_t bits;
    asm volatile("{\n.reg .pred q;\nsetp.ne.s32 q, %2, 0;\nmov.u64 %0, 0;\n@q ld.global.nc.u64 %0, [%1];\n}"
                 : "=&l"(bits)
                 : "l"(p), "r"(yes));
    __builtin_memcpy(&value, &bits, 8);
  } else if constexpr (sizeof(T) == 4) {
    uint32_t bits;
    asm volatile("{\n.reg .pred q;\nsetp.ne.s32 q, %2, 0;\nmov.u32 %0, 0;\n@q ld.global.nc.u32 %0, [%1];\n}"
                 : "=&r"(bits)
                 : "l"(p), "r"(yes));
    __builtin_memcpy(&value, &bits, 4);
  } else if constexpr (sizeof(T) == 2) {
    asm volatile("{\n.reg .pred q;\nsetp.ne.s32 q, %2, 0;\nmov.u16 %0, 0;\n@q ld.global.nc.u16 %0, [%1];\n}"
                 : "=&h"(value)
                 : "l"(p), "r"(yes));
  } else {
    uint32_t bits;
    asm volatile("{\n.reg .pred q;\nsetp.ne.s32 q, %2, 0;\nmov.u32 %0, 0;\n@q ld.global.nc.u8 %0, [%1];\n}"
                 : "=&r"(bits)
                 : "l"(p), "r"(yes));
    value = static_cast<T>(bits);
  }
  return value;
}

/// What all threads of a block need to know; one warp finds it out.
struct WalkItem {
  int64_t segment, tile;
  int64_t base;            ///< bytes to the tile's first unit; any number of axes: to the segment's
  uint32_t digits[2];      ///< of that unit
  int elements, segments;  ///< of the tile; of the block
  template <typename E, int kG, int kUnit>
  __device__ void Find(const Work& work, const Walk& c, bool any_axes) {
    constexpr int64_t kSize = sizeof(typename E::Type);
    int64_t group, inner = 0, middle = 0, rest = 0;
    const int64_t item = DivMod(work.block_base + blockIdx.x, c.groups, &group);
    const int64_t outer = c.outer_begin + DivMod(item, c.tiles, &tile);
    tile += work.range.tile_begin;
    const int64_t first = c.begin + group * kG;
    segment = outer * c.neighbours + first;
    segments = static_cast<int>(min(c.end - first, int64_t{kG}));
    elements = TileLength(work, tile);
    if (!any_axes) {
      const int64_t row = DivMod(tile * (kTileElements / kUnit), c.extents[0], &inner);
      rest = DivMod(row, c.extents[1], &middle);
    }
    digits[0] = static_cast<uint32_t>(inner);
    digits[1] = static_cast<uint32_t>(middle);
    base = AxesOffset(work.layout, false, 0, segment) * kSize + inner * c.strides[0] + middle * c.strides[1] +
           rest * c.strides[2];
  }
};

/// A thread's place: it moves on by a step of units at a time.
struct WalkPlace {
  uint32_t digits[2];
  int64_t offset;
  __device__ WalkPlace(const Walk& c, const WalkItem& item, int g, int phase) {
    const uint32_t inner = item.digits[0] + static_cast<uint32_t>(phase), row = inner / c.extents[0];
    const uint32_t middle = item.digits[1] + row, outer = middle / c.extents[1];
    digits[0] = inner - row * c.extents[0];
    digits[1] = middle - outer * c.extents[1];
    offset = item.base + g * c.neighbour_bytes +
             (static_cast<int64_t>(digits[0]) - item.digits[0]) * c.strides[0] +
             (static_cast<int64_t>(digits[1]) - item.digits[1]) * c.strides[1] + outer * c.strides[2];
  }
  __device__ void Move(const Walk& c) {
    digits[0] += c.digits[0];
    digits[1] += c.digits[1];
    offset += c.step;
    if (digits[0] >= c.extents[0]) {
      digits[0] -= c.extents[0];
      digits[1] += 1;
      offset += c.carries[0];
    }
    if (digits[1] >= c.extents[1]) {
      digits[1] -= c.extents[1];
      offset += c.carries[1];
    }
  }
};

/// Element by element: kG accumulators of a segment, those at phase + kPhases · k.
template <typename E, int kG>
struct WalkElements {
  static constexpr int kPhases = kBlockThreads / kG;
  /// In flight: as many as leave accumulators enough registers.
  static constexpr int kBatch = kG > 8 ? 8 : static_cast<int>(kTileElements / kAccumulators);
  double acc[kG] = {};

  __device__ void Sum(const Work& work, const Walk& c, const WalkItem& item, int g, int phase) {
    using T = typename E::Type;
    WalkPlace place(c, item, g, phase);
    const int end = g < item.segments ? item.elements : 0;
    constexpr int kRounds = kG > kBatch ? kG / kBatch : 1;
#pragma unroll 1
    for (int first = phase; first < end; first += kRounds * kBatch * kPhases) {
#pragma unroll
      for (int round = 0; round < kRounds; ++round) {
        T x[kBatch], y[kBatch];
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
          const bool there = first + (round * kBatch + k) * kPhases < end;
          x[k] = LoadIf<T>(work.a + place.offset, there);
          y[k] = LoadIf<T>(work.b + place.offset, there);
          place.Move(c);
        }
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
          double& sum = acc[(round * kBatch + k) % kG];
          sum = Accumulate<E>(x[k], y[k], work.flip, sum);
        }
      }
    }
    Fold<kG>(acc);
  }

  /// The tree over the phases, and the sums' ends.
  __device__ void End(const Work& work, const WalkItem& item, int g, int phase) {
    __shared__ double sums[kBlockThreads];
    const int t = static_cast<int>(threadIdx.x);
    if constexpr (kPhases >= 32) {
      sums[g * kPhases + phase] = acc[0];
      __syncthreads();
      const int warp = t / 32;
      if (warp >= item.segments) return;
      const double sum = WarpPhases<kPhases>(sums + warp * kPhases, t % 32);
      if (t % 32 == 0) Store(work, item.segment + warp, item.tile, sum);
    } else {
      double sum[1] = {acc[0]};
      AddPhases(kPhases, kG, kG, phase, g, sum, sums);
      if (phase == 0 && g < item.segments) Store(work, item.segment + g, item.tile, sum[0]);
    }
  }
};

/// A warp's segment in words, which are whole in a run and begin at 16-byte boundaries; or, kApart, words of
/// contiguous segments wherever they begin, each put together from the two that it lies in.
template <typename E, bool kApart>
__device__ double WalkWords(const Work& work, const Walk& c, const WalkItem& item, int g, int lane) {
  using T = typename E::Type;
  constexpr int kN = kWord<E>, kSize = sizeof(T), kBatch = kApart ? 2 : 4;
  WalkPlace place(c, item, g, lane);
  const int end = g < item.segments ? item.elements : 0;
  const char *a_begin = work.a + work.range.byte_begin, *a_end = work.a + work.range.byte_end;
  const char *b_begin = work.b + work.range.byte_begin, *b_end = work.b + work.range.byte_end;
  const int64_t tile = place.offset - lane * 16;
  const bool rim = kApart && (tile < work.range.byte_begin + 16 ||
                              tile + int64_t{item.elements} * kSize + 48 > work.range.byte_end);
  static_assert(kBatch % LaneSum<E>::kRows == 0);
  LaneSum<E> sum;
#pragma unroll 1
  for (int first = lane * kN; first < end; first += kBatch * 32 * kN) {
    uint4 x[kBatch], y[kBatch];
    [[maybe_unused]] Straddle s[kBatch], t[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const bool there = first + k * 32 * kN < end;
      x[k] = y[k] = {};
      if constexpr (kApart) {
        s[k] = t[k] = {};
        if (there && rim) {
          x[k] = LoadRim<kSize>(work.a + place.offset, a_begin, a_end);
          y[k] = LoadRim<kSize>(work.b + place.offset, b_begin, b_end);
        } else if (there) {
          s[k].Load(work.a + place.offset);
          t[k].Load(work.b + place.offset);
        }
      } else if (there) {
        x[k] = LoadOnce(work.a + place.offset);
        y[k] = LoadOnce(work.b + place.offset);
      }
      place.Move(c);
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      if constexpr (kApart) {
        if (!rim) {
          x[k] = s[k].template Get<T>();
          y[k] = t[k].template Get<T>();
        }
        const int left = end - first - k * 32 * kN;
        if (left < kN) {
          Keep<T>(x[k], 0, left);
          Keep<T>(y[k], 0, left);
        }
      }
      sum.Add(k, x[k], y[k], work.flip);
    }
  }
  return sum.Tree(lane);
}

/// A warp's segment over any number of axes.
template <typename E>
__device__ double WalkAnyAxes(const Work& work, const WalkItem& item, int64_t base, int lane) {
  using T = typename E::Type;
  const int64_t begin = item.tile * kTileElements;
  double acc[8] = {};
#pragma unroll 1
  for (int round = lane; round < item.elements; round += static_cast<int>(kAccumulators)) {
    T x[8] = {}, y[8] = {};
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int j = round + k * 32;
      if (j >= item.elements) continue;
      const int64_t at = base + AxesOffset(work.layout, true, 0, begin + j) * static_cast<int64_t>(sizeof(T));
      x[k] = *reinterpret_cast<const T*>(work.a + at);
      y[k] = *reinterpret_cast<const T*>(work.b + at);
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) acc[k] = Accumulate<E>(x[k], y[k], work.flip, acc[k]);
  }
  Fold<8>(acc);
  double one[1] = {acc[0]};
  return WarpTree(one, lane);
}

/// A block for a tile of kG neighbouring segments: 256 / kG threads for each.
template <typename E, WalkUnit kUnit, int kG>
__global__ void __launch_bounds__(kBlockThreads, kG > 8 || sizeof(typename E::Type) == 8 ? 2
                                                 : kG == 8                               ? 3
                                                                                         : 4)
    WalkKernel(const __grid_constant__ Work work, const __grid_constant__ Walk c) {
  constexpr bool kElements = kUnit == WalkUnit::kElement, kAnyAxes = kUnit == WalkUnit::kAnyAxes;
  static_assert(kElements || kG == kWarps);
  __shared__ WalkItem item;
  const int t = static_cast<int>(threadIdx.x);
  if (t < 32) {
    WalkItem found{};
    found.Find<E, kG, (kElements || kAnyAxes ? 1 : kWord<E>)>(work, c, kAnyAxes);
    if (t == 0) item = found;
  }
  __syncthreads();
  if constexpr (kElements) {
    const int high = t >> c.chunk_log2;
    const int g = high % kG, phase = (high / kG << c.chunk_log2) + (t & ((1 << c.chunk_log2) - 1));
    WalkElements<E, kG> elements;
    elements.Sum(work, c, item, g, phase);
    LetFinishStart();
    elements.End(work, item, g, phase);
  } else {
    const int g = t / 32, lane = t % 32;
    double sum;
    if constexpr (kAnyAxes) {
      const int64_t base = item.base + g * c.neighbour_bytes;
      if (g >= item.segments) return;
      sum = WalkAnyAxes<E>(work, item, base, lane);
    } else {
      sum = WalkWords<E, kUnit == WalkUnit::kApart>(work, c, item, g, lane);
    }
    LetFinishStart();
    if (lane == 0 && g < item.segments) Store(work, item.segment + g, item.tile, sum);
  }
}

}  // namespace tilewire::rmse::cuda
