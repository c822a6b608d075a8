// The kernel: every thread carries several packs of neighbouring elements, all loaded before the first is
// computed, so that enough bytes are under way to fill the memory's pipe.
#pragma once

#include <cstdint>

#include "kernels/gaussian/formula.h"

namespace tilewire::gaussian::cuda {

inline constexpr int kThreads = 256;  // of a block

struct F32 {
  using Type = float;
  using Constants = F32Constants;
  static __device__ __forceinline__ float Evaluate(float x, const Constants& c) { return EvaluateF32(x, c); }
};

template <bool kPlain>
struct F64 {
  using Type = double;
  using Constants = F64Constants;
  static __device__ __forceinline__ double Evaluate(double x, const Constants& c) {
    return EvaluateF64<kPlain>(x, c);
  }
};

/// So many elements that travel as one.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
  T element[kWidth];
};

/// Elements [0, count) behind the two pointers; packs begin at element `head` and are aligned there.
template <typename Format>
struct Work {
  const typename Format::Type* in;
  typename Format::Type* out;
  int64_t count;
  int64_t packs;
  int head;  ///< elements before the first pack
  typename Format::Constants constants;
};

/// The few elements that no pack holds, before the first and behind the last.
template <typename Format, int kWidth>
__device__ __forceinline__ void EvaluateEdges(const Work<Format>& work) {
  int64_t i = threadIdx.x;
  if (i >= work.head) i += work.packs * kWidth;
  if (threadIdx.x < 2 * kWidth && i < work.count) work.out[i] = Format::Evaluate(work.in[i], work.constants);
}

template <typename Format, int kWidth>
__device__ __forceinline__ void EvaluatePack(Pack<typename Format::Type, kWidth>& pack,
                                             const typename Format::Constants& constants) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) pack.element[i] = Format::Evaluate(pack.element[i], constants);
}

/// Packs of kWidth elements, kPacks a thread. `in` and `out` may be the same: a thread reads what it writes
/// before it writes.
template <typename Format, int kWidth, int kPacks>
__global__ void __launch_bounds__(kThreads) PdfKernel(const Work<Format> work) {
  using P = Pack<typename Format::Type, kWidth>;
  constexpr int64_t kTile = int64_t{kThreads} * kPacks;
  const int64_t tile = int64_t{blockIdx.x} * kTile;
  const int64_t first = tile + threadIdx.x;
  const auto* in = reinterpret_cast<const P*>(work.in + work.head) + first;
  auto* out = reinterpret_cast<P*>(work.out + work.head) + first;
  if (tile + kTile <= work.packs) {
    P packs[kPacks];
#pragma unroll
    for (int k = 0; k < kPacks; ++k) packs[k] = in[k * kThreads];
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      EvaluatePack<Format, kWidth>(packs[k], work.constants);
      out[k * kThreads] = packs[k];
    }
    return;
  }
  for (int k = 0; k < kPacks && first + k * kThreads < work.packs; ++k) {
    P pack = in[k * kThreads];
    EvaluatePack<Format, kWidth>(pack, work.constants);
    out[k * kThreads] = pack;
  }
  EvaluateEdges<Format, kWidth>(work);
}

}  // namespace tilewire::gaussian::cuda
