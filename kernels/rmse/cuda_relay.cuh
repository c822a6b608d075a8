// Contiguous segments of up to a tile: a warp has neighbouring ones copied into shared memory of its own, as
// they lie, and sums them from there, element by element, while the next are on their way. Whole words are
// read wherever segments begin, and only the last 32 elements of a segment leave lanes idle.
#pragma once

#include "kernels/rmse/cuda_group.cuh"
#include "kernels/rmse/cuda_staged.cuh"

namespace tilewire::rmse::cuda {

inline constexpr int kRelayWarps = 4;  // of a block; they share nothing
inline constexpr int kRelayJoint = 2;  // segments whose trees share the lanes
inline constexpr int kRelayRows = static_cast<int>(kAccumulators) / 32;

/// How a warp's segments are cut.
struct Relay {
  int per_stage;  ///< segments that are copied at once, a multiple of kRelayJoint
  int stages;     ///< per_stage * stages <= 32: a lane finishes each
  int words;      ///< 16-byte words of shared memory for a stage of one operand
  /// Blocks that take stages in turn, so that warps which run at the same time read what lies side by side.
  int sweep;
};

/// A segment's sum: a lane has accumulators lane, lane + 32, ...
template <typename E>
struct RelaySum {
  using T = typename E::Type;
  const T *x, *y;  ///< the lane's next elements
  int left;        ///< elements up to the segment's end, from lane 0's next on
  double acc[kRelayRows] = {};

  /// kCount rows of 32 elements; kLast: the segment ends in the last of them.
  template <int kCount, bool kLast>
  __device__ void AddRows(int lane, uint64_t flip) {
    T p[kCount], q[kCount];
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      p[k] = q[k] = {};
      if (!kLast || k < kCount - 1 || k * 32 + lane < left) p[k] = x[k * 32], q[k] = y[k * 32];
    }
#pragma unroll
    for (int k = 0; k < kCount; ++k) acc[k] = Accumulate<E>(p[k], q[k], flip, acc[k]);
  }

  /// The last `rows` rows, kLeast to kMost: each count has code of its own, so no slot is spent on others.
  template <int kLeast, int kMost>
  __device__ void AddLast(int rows, int lane, uint64_t flip) {
    if constexpr (kLeast == kMost) {
      AddRows<kLeast, true>(lane, flip);
    } else {
      constexpr int kMiddle = (kLeast + kMost) / 2;
      if (rows <= kMiddle) {
        AddLast<kLeast, kMiddle>(rows, lane, flip);
      } else {
        AddLast<kMiddle + 1, kMost>(rows, lane, flip);
      }
    }
  }

  /// All rows, and the tree over them: what is left is a sum a lane.
  __device__ double Run(int lane, uint64_t flip) {
#pragma unroll 1
    for (; left >= kRelayRows * 32; left -= kRelayRows * 32) {
      AddRows<kRelayRows, false>(lane, flip);
      x += kRelayRows * 32;
      y += kRelayRows * 32;
    }
    if (left > 0) AddLast<1, kRelayRows>((left + 31) / 32, lane, flip);
    Fold<kRelayRows>(acc);
    return acc[0];
  }
};

/// A lane's part of a segment of 8- or 16-bit integers: `bytes` from byte `begin` of both.
template <typename E>
__device__ typename E::Sum RelayExact(const uint32_t* x, const uint32_t* y, int begin, int bytes, int lane,
                                      uint64_t flip) {
  const WordSpan words(begin, bytes);
  const auto mask = static_cast<uint32_t>(flip);
  ExactSquares<E> squares;
  uint32_t keep = lane == 0 ? words.head : 0xffffffffu;
#pragma unroll 4
  for (int w = words.first + lane; w <= words.last; w += 32) {
    if (w == words.last) keep &= words.tail;
    const uint32_t p = (x[w] ^ mask) & keep, q = (y[w] ^ mask) & keep;
    squares.Add(p, q);
    keep = 0xffffffffu;
  }
  return squares.total();
}

/// The sums of kRelayJoint segments of n elements from element `at` of both on, of which `there` are there:
/// lanes u * 32 / kRelayJoint on return the u-th.
template <typename E>
__device__ double SumRelayed(const uint4* x, const uint4* y, int at, int n, int there, int lane,
                             uint64_t flip) {
  using T = typename E::Type;
  if constexpr (E::kExact) {
    constexpr int kSize = sizeof(T);
    typename E::Sum sum[kRelayJoint][1] = {};
#pragma unroll
    for (int u = 0; u < kRelayJoint; ++u) {
      if (u < there)
        sum[u][0] = RelayExact<E>(reinterpret_cast<const uint32_t*>(x), reinterpret_cast<const uint32_t*>(y),
                                  (at + u * n) * kSize, n * kSize, lane, flip);
    }
    ExchangeAll<32, kRelayJoint>(sum, lane);
    return __ull2double_rn(sum[0][0]);
  } else {
    double sum[kRelayJoint][1] = {};
#pragma unroll
    for (int u = 0; u < kRelayJoint; ++u) {
      const int from = at + u * n + lane;
      if (u < there)
        sum[u][0] =
            RelaySum<E>{reinterpret_cast<const T*>(x) + from, reinterpret_cast<const T*>(y) + from, n}.Run(
                lane, flip);
    }
    ExchangeAll<32, kRelayJoint>(sum, lane);
    return sum[0][0];
  }
}

/// Starts copying `words` words of both operands, or copies them where they lie at the arrays' rim.
template <typename T>
__device__ void StartRelay(uint4* x, uint4* y, const char* a, const char* b, int words, int lane,
                           const Work& work) {
  const char *a_begin = work.a + work.range.byte_begin, *a_end = work.a + work.range.byte_end;
  const char *b_begin = work.b + work.range.byte_begin, *b_end = work.b + work.range.byte_end;
#if __CUDA_ARCH__ >= 800
  if (a >= a_begin && a + words * 16 <= a_end) {
    const auto to_x = static_cast<unsigned>(__cvta_generic_to_shared(x));
    const auto to_y = static_cast<unsigned>(__cvta_generic_to_shared(y));
#pragma unroll 4
    for (int w = lane * 16; w < words * 16; w += 512) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to_x + w), "l"(a + w) : "memory");
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to_y + w), "l"(b + w) : "memory");
    }
    return;
  }
#endif
  for (int w = lane; w < words; w += 32) {
    x[w] = LoadWithin<T>(a + w * 16, a_begin, a_end);
    y[w] = LoadWithin<T>(b + w * 16, b_begin, b_end);
  }
}

/// Until all that the warp has started to copy is there, and all its lanes know.
__device__ inline void WaitForRelay() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncwarp();
}

/// Segments of one tile, whose operands are misaligned alike. The blocks of a sweep share its stages like the
/// lanes of a warp share words: a warp's next stage lies a sweep's warps further on.
template <typename E>
__global__ void __launch_bounds__(kRelayWarps * 32)
    RelayKernel(const __grid_constant__ Work work, const __grid_constant__ Relay c) {
  using T = typename E::Type;
  constexpr int kSize = sizeof(T), kSteps = 32 / kRelayJoint;
  extern __shared__ uint4 staged[];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int n = static_cast<int>(work.layout.elements);
  int64_t first;
  const int64_t sweep = DivMod(work.block_base + blockIdx.x, c.sweep, &first);
  first =
      work.range.segment_begin + ((sweep * c.stages * c.sweep + first) * kRelayWarps + warp) * c.per_stage;
  const int64_t stride = static_cast<int64_t>(c.sweep) * kRelayWarps * c.per_stage;
  uint4* const buffers = staged + warp * 4 * c.words;  // [2][operand][words]
  int skip = 0, count = 0;                             // of the stage that is on its way
  const auto start = [&](uint4* x, int stage) {
    const int64_t from = first + stage * stride, bytes = from * n * kSize;
    count = 0;
    if (stage >= c.stages || from >= work.range.segment_end) return;
    count = static_cast<int>(min(work.range.segment_end - from, static_cast<int64_t>(c.per_stage)));
    skip = Misalignment<E>(work.a + bytes);
    StartRelay<T>(x, x + c.words, work.a + bytes - skip * kSize, work.b + bytes - skip * kSize,
                  ((skip + count * n) * kSize + 15) / 16, lane, work);
  };
  uint4* x = buffers;
  start(x, 0);
  double mine = 0;
  int step = 0;
#pragma unroll 1
  for (int stage = 1; count > 0; ++stage) {
    WaitForRelay();
    const int at = skip, here = count;
    uint4* const next = buffers + (x == buffers ? 2 * c.words : 0);
    start(next, stage);
#pragma unroll 1
    for (int s = 0; s < here; s += kRelayJoint, ++step) {
      const double sum = SumRelayed<E>(x, x + c.words, at + s * n, n, here - s, lane, work.flip);
      if (lane % kSteps == step) mine = sum;
    }
    x = next;
  }
  const int index = lane % kSteps * kRelayJoint + lane / kSteps, stage = index / c.per_stage;
  const int64_t segment = first + stage * stride + index % c.per_stage;
  if (stage < c.stages && segment < work.range.segment_end) Store(work, segment, 0, mine);
}

}  // namespace tilewire::rmse::cuda
