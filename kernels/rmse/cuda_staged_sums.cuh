// How a segment that lies in shared memory is summed: by a thread or several, row by row or word by word, or
// by a warp.
#pragma once

#include "kernels/rmse/cuda_work.cuh"

namespace tilewire::rmse::cuda {

inline constexpr int kWarpRows = static_cast<int>(kAccumulators) / 32;

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

/// A thread's rows of one column. kStep: rows from one of a group to the next where a segment has one column;
/// 0: any layout.
template <typename E, int kStep>
__device__ double SumStaged(const typename E::Type* x, const typename E::Type* y, const Staged& c, int phase,
                            uint64_t flip) {
  constexpr int kLevels = 5;  // 256 rows / kStagedRows
  // More than half of a period's rows are there, so half of a group's, but where there is one group.
  constexpr int kLeast = kStep > 1 ? kStagedRows / 2 : 1;
  const int step = kStep > 0 ? kStep : c.phases * c.groups, width = kStep > 0 ? 1 : c.width;
  const int shift = __clz(c.groups);
  double held[kLevels + 1][1], sum[1] = {0};
#pragma unroll 1
  for (int g = 0; g < c.groups; ++g) {
    const int row = phase + c.phases * Reversed(g, shift);
    const int count =
        static_cast<int>(static_cast<unsigned>(c.rows - row + step - 1) / static_cast<unsigned>(step));
    sum[0] = SumRows<E, kStagedRows, kLeast>(x + row * width, y + row * width, step * width, count, flip);
    Carry<kLevels>(g, sum, held);
  }
  return sum[0];
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

/// The tree over words kFirst, kFirst + kStep, ... of kPeriod, of which `words` are there: a sum for each
/// place in a word. Words that are not there count as +0, which changes no bit.
template <typename E, int kPeriod, int kStep = 1, int kFirst = 0>
__device__ void SumWholeWords(const uint4* x, const uint4* y, int words, double (&sum)[kWord<E>]) {
  using T = typename E::Type;
  constexpr int kN = kWord<E>;
  if constexpr (kStep == kPeriod) {
    const uint4 p = x[kFirst], q = y[kFirst];
#pragma unroll
    for (int v = 0; v < kN; ++v) sum[v] = Accumulate<E>(At<T>(p, v), At<T>(q, v), 0, 0.0);
  } else {
    SumWholeWords<E, kPeriod, kStep * 2, kFirst>(x, y, words, sum);
    if (kFirst + kStep >= words) return;
    double other[kN];
    SumWholeWords<E, kPeriod, kStep * 2, kFirst + kStep>(x, y, words, other);
#pragma unroll
    for (int v = 0; v < kN; ++v) sum[v] = __dadd_rn(sum[v], other[v]);
  }
}

/// A segment's sum: a lane has accumulators lane, lane + 32, ...
template <typename E>
struct WarpRows {
  using T = typename E::Type;
  const T *x, *y;  ///< the lane's next elements
  int left;        ///< elements up to the segment's end, from lane 0's next on
  double acc[kWarpRows] = {};

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
    for (; left >= kWarpRows * 32; left -= kWarpRows * 32) {
      AddRows<kWarpRows, false>(lane, flip);
      x += kWarpRows * 32;
      y += kWarpRows * 32;
    }
    if (left > 0) AddLast<1, kWarpRows>((left + 31) / 32, lane, flip);
    Fold<kWarpRows>(acc);
    return acc[0];
  }
};

/// A lane's part of a segment of 8- or 16-bit integers: `bytes` from byte `begin` of both.
template <typename E>
__device__ typename E::Sum WarpExactPart(const uint32_t* x, const uint32_t* y, int begin, int bytes, int lane,
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

/// The sums of kStagedJoint segments of n elements from element `at` of both on, of which `there` are there:
/// lanes u * 32 / kStagedJoint on return the u-th.
template <typename E>
__device__ double SumJoint(const uint4* x, const uint4* y, int at, int n, int there, int lane,
                           uint64_t flip) {
  using T = typename E::Type;
  if constexpr (E::kExact) {
    constexpr int kSize = sizeof(T);
    typename E::Sum sum[kStagedJoint][1] = {};
#pragma unroll
    for (int u = 0; u < kStagedJoint; ++u) {
      if (u < there)
        sum[u][0] =
            WarpExactPart<E>(reinterpret_cast<const uint32_t*>(x), reinterpret_cast<const uint32_t*>(y),
                             (at + u * n) * kSize, n * kSize, lane, flip);
    }
    ExchangeAll<32, kStagedJoint>(sum, lane);
    return __ull2double_rn(sum[0][0]);
  } else {
    double sum[kStagedJoint][1] = {};
#pragma unroll
    for (int u = 0; u < kStagedJoint; ++u) {
      const int from = at + u * n + lane;
      if (u < there)
        sum[u][0] =
            WarpRows<E>{reinterpret_cast<const T*>(x) + from, reinterpret_cast<const T*>(y) + from, n}.Run(
                lane, flip);
    }
    ExchangeAll<32, kStagedJoint>(sum, lane);
    return sum[0][0];
  }
}

}  // namespace tilewire::rmse::cuda
