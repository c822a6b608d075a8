// Segments in runs, element by element: a thread for an accumulator walks over its elements, wherever runs
// begin and end.
#pragma once

#include "kernels/rmse/cuda_work.cuh"

namespace tilewire::rmse::cuda {

/// How a segment's elements lie, in bytes, and what a block takes. Digits of an index: [0] in the innermost
/// reduced axis, [1] in the next; the axes further out need none.
struct Walk {
  int64_t outer_begin;             ///< batch indices without their innermost axis, counted over all of them
  int64_t neighbours, begin, end;  ///< the innermost batch axis: its extent, and the part that the range has
  int64_t neighbour_bytes;         ///< from a segment to the next of them
  int64_t groups, tiles;           ///< of kG neighbours; of the range
  int64_t strides[3];              ///< of the three innermost reduced axes
  uint32_t extents[2];
  uint32_t digits[2];  ///< of a step
  int64_t step;        ///< bytes of a step where no axis ends
  int64_t carries[2];  ///< added where axis 0 or 1 does
  int chunk_log2;      ///< lanes side by side that take neighbouring elements; the next segment's follow
};

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
  int64_t segment, tile, base;  ///< base: bytes to the tile's first element
  uint32_t digits[2];           ///< of that one
  int elements, segments;       ///< of the tile; of the block
  template <typename E, int kG>
  __device__ void Find(const Work& work, const Walk& c) {
    constexpr int64_t kSize = sizeof(typename E::Type);
    int64_t group, inner, middle;
    const int64_t item = DivMod(work.block_base + blockIdx.x, c.groups, &group);
    const int64_t outer = c.outer_begin + DivMod(item, c.tiles, &tile);
    tile += work.range.tile_begin;
    const int64_t first = c.begin + group * kG;
    segment = outer * c.neighbours + first;
    segments = static_cast<int>(min(c.end - first, int64_t{kG}));
    elements = TileLength(work, tile);
    const int64_t row = DivMod(tile * kTileElements, c.extents[0], &inner);
    const int64_t rest = DivMod(row, c.extents[1], &middle);
    digits[0] = static_cast<uint32_t>(inner);
    digits[1] = static_cast<uint32_t>(middle);
    base = AxesOffset(work.layout, false, 0, segment) * kSize + inner * c.strides[0] + middle * c.strides[1] +
           rest * c.strides[2];
  }
};

/// A thread's place: it moves on by `c.step` elements at a time.
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

/// A block for a tile of kG neighbouring segments: 256 / kG threads for each, and kG accumulators a thread.
template <typename E, int kG>
__global__ void __launch_bounds__(kBlockThreads, sizeof(typename E::Type) == 8 ? 2
                                                 : kG == 8                     ? 3
                                                                               : 4)
    WalkKernel(const __grid_constant__ Work work, const __grid_constant__ Walk c) {
  using T = typename E::Type;
  constexpr int kBatch = static_cast<int>(kTileElements / kAccumulators), kPhases = kBlockThreads / kG;
  static_assert(kPhases >= 32 && kBatch % kG == 0);
  __shared__ WalkItem item;
  __shared__ double sums[kBlockThreads];
  const int t = static_cast<int>(threadIdx.x);
  if (t < 32) {
    WalkItem found{};
    found.Find<E, kG>(work, c);
    if (t == 0) item = found;
  }
  __syncthreads();
  const int high = t >> c.chunk_log2;
  const int g = high % kG, phase = (high / kG << c.chunk_log2) + (t & ((1 << c.chunk_log2) - 1));
  WalkPlace place(c, item, g, phase);
  const int end = g < item.segments ? item.elements : 0;
  double acc[kG] = {};
#pragma unroll 1
  for (int first = phase; first < end; first += kBatch * kPhases) {
    T x[kBatch], y[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const bool there = first + k * kPhases < end;
      x[k] = LoadIf<T>(work.a + place.offset, there);
      y[k] = LoadIf<T>(work.b + place.offset, there);
      place.Move(c);
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) acc[k % kG] = Accumulate<E>(x[k], y[k], work.flip, acc[k % kG]);
  }
  LetFinishStart();
  Fold<kG>(acc);
  sums[g * kPhases + phase] = acc[0];
  __syncthreads();
  const int lane = t % 32, warp = t / 32;
  if (warp >= item.segments) return;
  double part[kPhases / 32];
#pragma unroll
  for (int w = 0; w < kPhases / 32; ++w) part[w] = sums[warp * kPhases + w * 32 + lane];
  Fold<kPhases / 32>(part);
  double sum = part[0];
#pragma unroll
  for (int lanes = 16; lanes >= 1; lanes /= 2) sum = __dadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, lanes));
  if (lane == 0) Store(work, item.segment + warp, item.tile, sum);
}

}  // namespace tilewire::rmse::cuda
