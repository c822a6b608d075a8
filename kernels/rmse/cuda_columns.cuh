// What the kernels of columns share: pieces of a row, and how a thread stores its columns.
#pragma once

#include "kernels/rmse/cuda_work.cuh"

namespace tilewire::rmse::cuda {

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

/// The tree over the phases of a block, to phase 0.
template <int kV>
__device__ void AddPhases(const Columns& c, int phase, int lane, double (&sum)[kV], double* shared) {
  AddPhases(c.phases, c.lanes, c.pitch, phase, lane, sum, shared);
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

}  // namespace tilewire::rmse::cuda
