// Short segments that lie in one piece with their neighbours: a block copies many of them into shared memory
// as they lie, and a thread sums a segment, or some of its rows, from there. No lane is idle, however long
// segments are and wherever they begin.
#pragma once

#include "kernels/rmse/cuda_work.cuh"

namespace tilewire::rmse::cuda {

/// How an array [item][row][column] is cut: a segment is a column of an item, and an item is one piece of
/// memory. Contiguous segments are items of one column.
struct Staged {
  int64_t item_begin, item_end;
  int rows, width;    ///< of an item
  int items;          ///< of a block
  int lanes, phases;  ///< a block's threads: phase p of a segment has rows p, p + phases, ...
  int groups;         ///< of up to kStagedRows rows that a thread sums
  int words;          ///< 16-byte words of shared memory for an operand
};

inline constexpr int kStagedRows = 8;  ///< that a thread has in registers

/// Copies the words from `from`, a multiple of 16, to shared memory; bytes outside [begin, end) become 0.
template <typename T>
__device__ void StageWords(uint4* to, const char* from, int words, const char* begin, const char* end) {
  if (from < begin || from + words * 16 > end) {
    for (int w = static_cast<int>(threadIdx.x); w < words; w += static_cast<int>(blockDim.x))
      to[w] = LoadWithin<T>(from + w * 16, begin, end);
    return;
  }
#pragma unroll 4
  for (int w = static_cast<int>(threadIdx.x); w < words; w += static_cast<int>(blockDim.x)) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(to + w))),
                 "l"(from + w * 16)
                 : "memory");
#else
    to[w] = __ldg(reinterpret_cast<const uint4*>(from) + w);
#endif
  }
}

__device__ inline void WaitForStaged() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncthreads();
}

/// The tree over rows 0, step, 2 · step, ..., `count` of up to kCount; no slot is spent on rows that are not
/// there.
template <typename E, int kCount, int kLeast>
__device__ double SumRows(const typename E::Type* x, const typename E::Type* y, int step, int count,
                          uint64_t flip) {
  if constexpr (kCount > kLeast) {
    if (count < kCount) return SumRows<E, kCount - 1, kLeast>(x, y, step, count, flip);
  }
  typename E::Type p[kCount], q[kCount];
#pragma unroll
  for (int k = 0; k < kCount; ++k) p[k] = x[k * step], q[k] = y[k * step];
  double square[kCount];
#pragma unroll
  for (int k = 0; k < kCount; ++k) square[k] = Accumulate<E>(p[k], q[k], flip, 0.0);
#pragma unroll
  for (int s = kStagedRows / 2; s >= 1; s /= 2) {
#pragma unroll
    for (int k = 0; k < s; ++k)
      if (k + s < kCount) square[k] = __dadd_rn(square[k], square[k + s]);
  }
  return square[0];
}

/// A thread's rows of one column. Groups come in bit-reversed order, so that equal subtrees meet like the
/// carries of a binary counter. kStep: rows from one of a group to the next where a segment has one column;
/// 0: any layout.
template <typename E, int kStep>
__device__ double SumStaged(const typename E::Type* x, const typename E::Type* y, const Staged& c, int phase,
                            uint64_t flip) {
  constexpr int kLevels = 5;  // 256 rows / kStagedRows
  // More than half of a period's rows are there, so half of a group's, but where there is one group.
  constexpr int kLeast = kStep > 1 ? kStagedRows / 2 : 1;
  const int step = kStep > 0 ? kStep : c.phases * c.groups, width = kStep > 0 ? 1 : c.width;
  const int shift = __clz(c.groups);
  double held[kLevels], sum = 0;
#pragma unroll 1
  for (int g = 0; g < c.groups; ++g) {
    const int row = phase + c.phases * static_cast<int>(__brev(static_cast<unsigned>(g)) >> 1 >> shift);
    const int count =
        static_cast<int>(static_cast<unsigned>(c.rows - row + step - 1) / static_cast<unsigned>(step));
    sum = SumRows<E, kStagedRows, kLeast>(x + row * width, y + row * width, step * width, count, flip);
    bool carry = true;
#pragma unroll
    for (int level = 0; level < kLevels; ++level) {
      if (!carry) continue;
      if ((g >> level & 1) == 0) {
        held[level] = sum;
        carry = false;
      } else {
        sum = __dadd_rn(held[level], sum);
      }
    }
  }
  return sum;
}

/// 8- and 16-bit integers, whose order does not matter.
template <typename E>
__device__ typename E::Sum SumStagedExact(const typename E::Type* x, const typename E::Type* y,
                                          const Staged& c, int phase, uint64_t flip) {
  using T = typename E::Type;
  constexpr int kBatch = 8;
  const int step = c.phases * c.width;
  x += phase * c.width;
  y += phase * c.width;
  typename E::Sum sum = 0;
  int row = phase;
#pragma unroll 1
  for (; row + (kBatch - 1) * c.phases < c.rows; row += kBatch * c.phases) {
    T p[kBatch], q[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) p[k] = x[k * step], q[k] = y[k * step];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) sum += Square<E>(p[k], q[k], flip);
    x += kBatch * step;
    y += kBatch * step;
  }
  for (; row < c.rows; row += c.phases, x += step, y += step) sum += Square<E>(*x, *y, flip);
  return sum;
}

/// What ExactSum gives, of 32-bit words one after the other, whose signs are flipped.
template <typename E>
struct ExactSquares {
  typename E::Sum sum = 0;
  uint32_t products = 0;  ///< of 8 bits
  __device__ void Add(uint32_t a, uint32_t b) {
    using T = typename E::Type;
    if constexpr (sizeof(T) == 1) {
      sum = __dp4a(b, b, __dp4a(a, a, sum));
      products = __dp4a(a, b, products);
    } else {
      sum += Square<E>(static_cast<T>(a), static_cast<T>(b), 0);
      sum += Square<E>(static_cast<T>(a >> 16), static_cast<T>(b >> 16), 0);
    }
  }
  __device__ typename E::Sum total() const { return sum - 2 * products; }
};

/// Bytes in aligned 32-bit words, of which the first and the last may belong to others too.
struct WordSpan {
  int end;              ///< the last byte
  int last;             ///< the word it is in
  uint32_t head, tail;  ///< the bytes of the first word and of the last one that are meant
  int first;            ///< word
  __device__ WordSpan(int begin, int bytes)
      : end(begin + bytes - 1),
        last(end / 4),
        head(0xffffffffu << begin % 4 * 8),
        tail(0xffffffffu >> (3 - end % 4) * 8),
        first(begin / 4) {}
};

/// A contiguous segment of 8- or 16-bit integers: `bytes` from byte `begin` of both.
template <typename E>
__device__ typename E::Sum SumStagedWords(const uint32_t* x, const uint32_t* y, int begin, int bytes,
                                          uint64_t flip) {
  const WordSpan words(begin, bytes);
  const auto mask = static_cast<uint32_t>(flip);
  ExactSquares<E> squares;
#pragma unroll 4
  for (int w = words.first; w <= words.last; ++w) {
    uint32_t keep = 0xffffffffu;
    if (w == words.first) keep = words.head;
    if (w == words.last) keep &= words.tail;
    const uint32_t p = (x[w] ^ mask) & keep, q = (y[w] ^ mask) & keep;
    squares.Add(p, q);
  }
  return squares.total();
}

/// The tree over the phases of each lane's segment, to phase 0.
__device__ inline double AddStagedPhases(const Staged& c, int phase, double sum, double* sums) {
  for (int s = c.phases / 2; s >= 1; s /= 2) {
    if (phase >= s && phase < 2 * s) sums[threadIdx.x] = sum;
    __syncthreads();
    if (phase < s) sum = __dadd_rn(sum, sums[threadIdx.x + s * c.lanes]);
  }
  return sum;
}

/// kStep as for SumStaged; integers of 8 and 16 bits: 1 where a segment has one column, else 0.
template <typename E, int kStep>
__global__ void __launch_bounds__(kBlockThreads)
    StagedKernel(const __grid_constant__ Work work, const __grid_constant__ Staged c) {
  using T = typename E::Type;
  constexpr int kSize = sizeof(T);
  LetFinishStart();
  extern __shared__ uint4 staged[];
  uint4 *const x = staged, *const y = staged + c.words;
  const int64_t first = c.item_begin + (work.block_base + blockIdx.x) * c.items;
  const int items = static_cast<int>(min(c.item_end - first, static_cast<int64_t>(c.items)));
  const int width = kStep > 0 ? 1 : c.width, item_elements = c.rows * width;
  const char *a = work.a + first * item_elements * kSize, *b = work.b + first * item_elements * kSize;
  const int skip_a = Misalignment<E>(a), skip_b = Misalignment<E>(b), elements = items * item_elements;
  StageWords<T>(x, a - skip_a * kSize, ((skip_a + elements) * kSize + 15) / 16,
                work.a + work.range.byte_begin, work.a + work.range.byte_end);
  StageWords<T>(y, b - skip_b * kSize, ((skip_b + elements) * kSize + 15) / 16,
                work.b + work.range.byte_begin, work.b + work.range.byte_end);
  WaitForStaged();
  const int phase = c.phases == 1 ? 0 : static_cast<int>(threadIdx.x) / c.lanes;
  const int lane = static_cast<int>(threadIdx.x) - phase * c.lanes, segments = items * width;
  double sum = 0;
  for (int s = lane; s < segments && phase < c.phases; s += c.lanes) {
    const int item =
        kStep > 0 ? s : static_cast<int>(static_cast<unsigned>(s) / static_cast<unsigned>(width));
    const int place = item * item_elements + s - item * width;
    const T* p = reinterpret_cast<const T*>(x) + skip_a + place;
    const T* q = reinterpret_cast<const T*>(y) + skip_b + place;
    if constexpr (!E::kExact) {
      sum = SumStaged<E, kStep>(p, q, c, phase, work.flip);
    } else if constexpr (kStep > 0) {
      sum = __ull2double_rn(SumStagedWords<E>(reinterpret_cast<const uint32_t*>(x),
                                              reinterpret_cast<const uint32_t*>(y), (skip_a + place) * kSize,
                                              c.rows * kSize, work.flip));
    } else {
      sum = __ull2double_rn(SumStagedExact<E>(p, q, c, phase, work.flip));
    }
    if (c.phases == 1) Store(work, first * width + s, 0, sum);
  }
  if (c.phases == 1) return;
  sum = AddStagedPhases(c, phase, sum, reinterpret_cast<double*>(staged + 2 * c.words));
  if (phase == 0 && lane < segments) Store(work, first * width + lane, 0, sum);
}

}  // namespace tilewire::rmse::cuda
