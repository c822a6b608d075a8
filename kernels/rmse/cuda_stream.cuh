// Columns at one distance from row to row: a thread reads pieces of neighbouring columns down the rows, and
// climbs most of the tree in registers.
#pragma once

#include "kernels/rmse/cuda_work.cuh"

namespace tilewire::rmse::cuda {

/// How rows are cut. A thread owns kV columns of a window and rows phase + phases · chain + period · round of
/// a tile. `chains` of one thread and `phases` threads make the period.
struct Stream {
  int64_t width, windows, tiles, outer_begin;
  int64_t stride;  ///< bytes from a row to the next
  int lanes, phases, groups, period;
};

/// kV columns of a row. kVector: neighbours, at a multiple of their size; else 32 columns apart, so that a
/// warp reads whole lines whatever the alignment.
template <typename T, int kV, bool kVector>
struct Piece;

template <typename T, int kV>
struct Piece<T, kV, true> {
  static constexpr int kBytes = kV * static_cast<int>(sizeof(T));
  uint32_t part[kBytes / 4];
  __device__ void Load(const char* p, bool there) {
    const int yes = there;
    if constexpr (kBytes == 16) {
      asm volatile(
          "{\n.reg .pred q;\nsetp.ne.s32 q, %5, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\nmov.u32 %2, 0;\nmov.u32 "
          "%3, 0;\n"
          "@q ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
          : "=&r"(part[0]), "=&r"(part[1]), "=&r"(part[2]), "=&r"(part[3])
          : "l"(p), "r"(yes));
    } else if constexpr (kBytes == 8) {
      asm volatile(
          "{\n.reg .pred q;\nsetp.ne.s32 q, %3, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\n"
          "@q ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];\n}"
          : "=&r"(part[0]), "=&r"(part[1])
          : "l"(p), "r"(yes));
    } else {
      static_assert(kBytes == 4);
      asm volatile(
          "{\n.reg .pred q;\nsetp.ne.s32 q, %2, 0;\nmov.u32 %0, 0;\n@q ld.global.nc.L1::no_allocate.u32 %0, "
          "[%1];\n}"
          : "=&r"(part[0])
          : "l"(p), "r"(yes));
    }
  }
  __device__ T Get(int v) const {
    T value;
    if constexpr (sizeof(T) == 8) {
      const uint64_t bits = static_cast<uint64_t>(part[2 * v + 1]) << 32 | part[2 * v];
      __builtin_memcpy(&value, &bits, 8);
    } else if constexpr (sizeof(T) == 4) {
      __builtin_memcpy(&value, &part[v], 4);
    } else {
      constexpr int kPer = 4 / sizeof(T);
      value = static_cast<T>(part[v / kPer] >> (v % kPer * 8 * static_cast<int>(sizeof(T))));
    }
    return value;
  }
};

template <typename T, int kV>
struct Piece<T, kV, false> {
  T value[kV];
  __device__ void Load(const char* p, bool there) {
#pragma unroll
    for (int v = 0; v < kV; ++v) {
      value[v] = T{};
      if (there) value[v] = LoadNow(reinterpret_cast<const T*>(p) + v * 32);
    }
  }
  __device__ T Get(int v) const {
    return value[v];
  }
};

__device__ constexpr int ReversedOf(int k, int n) {
  int r = 0;
  for (; n > 1; n /= 2, k /= 2) r = r * 2 + k % 2;
  return r;
}

/// After chain k of a group: equal subtrees meet like the carries of a binary counter.
template <int kGroup, int kV>
__device__ void FoldBack(double (&acc)[kGroup][kV], int k) {
#pragma unroll
  for (int s = 1; s < kGroup; s *= 2)
    if ((k + 1) % (2 * s) == 0) {
#pragma unroll
      for (int v = 0; v < kV; ++v)
        acc[k + 1 - 2 * s][v] = __dadd_rn(acc[k + 1 - 2 * s][v], acc[k + 1 - s][v]);
    }
}

/// Likewise after group g of a thread: `sum` becomes that of the largest subtree that ends here.
template <int kLevels, int kV>
__device__ void Carry(int g, double (&sum)[kV], double (&held)[kLevels + 1][kV]) {
  bool carry = true;
#pragma unroll
  for (int level = 0; level < kLevels; ++level) {
    if (!carry) continue;
    if ((g >> level & 1) == 0) {
#pragma unroll
      for (int v = 0; v < kV; ++v) held[level][v] = sum[v];
      carry = false;
    } else {
#pragma unroll
      for (int v = 0; v < kV; ++v) sum[v] = __dadd_rn(held[level][v], sum[v]);
    }
  }
}

/// Places of a phase's sums in AddPhases, `columns` of each lane.
__host__ __device__ constexpr int PhasePitch(int lanes, int columns) {
  return lanes * columns + (lanes < 16 ? lanes : 0);
}

/// The tree over the phases, to phase 0: at each level the upper half of those left puts its sums down and
/// the lower half adds them. A level's places are its own, so one barrier suffices.
template <int kV>
__device__ void AddPhases(const Stream& c, int phase, int lane, double (&sum)[kV], double* shared) {
  const int pitch = PhasePitch(c.lanes, kV);
  double* mine = shared + phase * pitch + lane;
  for (int s = c.phases / 2; s >= 1; s /= 2) {
    if (phase >= s && phase < 2 * s) {
#pragma unroll
      for (int v = 0; v < kV; ++v) mine[v * c.lanes] = sum[v];
    }
    __syncthreads();
    if (phase < s) {
#pragma unroll
      for (int v = 0; v < kV; ++v) sum[v] = __dadd_rn(sum[v], mine[s * pitch + v * c.lanes]);
    }
  }
}

/// Stores a thread's columns: neighbours from `column` on, or 32 apart.
template <int kV, bool kVector>
__device__ void StoreColumns(const Work& work, int64_t segment, int64_t tile, int64_t least,
                             const double (&sum)[kV]) {
  constexpr int kStep = kVector ? 1 : 32;
  if constexpr (kVector && kV % 2 == 0) {
    double* to = work.result + segment;
    if (work.result != nullptr && reinterpret_cast<uintptr_t>(to) % 16 == 0 &&
        segment >= work.range.segment_begin && segment + kV <= work.range.segment_end) {
#pragma unroll
      for (int v = 0; v < kV; v += 2)
        *reinterpret_cast<double2*>(to + v) =
            double2{Finished(work.ending, sum[v]), Finished(work.ending, sum[v + 1])};
      return;
    }
  }
#pragma unroll
  for (int v = 0; v < kV; ++v) {
    const int64_t s = segment + v * kStep;
    if (s >= least && s >= work.range.segment_begin && s < work.range.segment_end)
      Store(work, s, tile, sum[v]);
  }
}

/// kRounds · (chains of a group) = kBatch pieces of each operand are in flight at once; 2^kLevels groups at
/// most. kMost threads at most, kBlocks blocks a multiprocessor at least.
template <typename E, int kV, bool kVector, int kRounds, int kBatch, int kLevels, int kMost, int kBlocks>
__global__ void __launch_bounds__(kMost, kBlocks)
    StreamKernel(const __grid_constant__ Work work, const __grid_constant__ Stream c) {
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
    const int chain = static_cast<int>(__brev(static_cast<unsigned>(g)) >> 1 >> shift);
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
        if constexpr (kRounds == 1 && !E::kExact) FoldBack<kGroup, kV>(acc, k);
      }
    }
    if constexpr (kRounds > 1 && !E::kExact) {
#pragma unroll
      for (int k = 0; k < kGroup; ++k) FoldBack<kGroup, kV>(acc, k);
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
