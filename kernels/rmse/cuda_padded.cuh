// 16-bit floats in short segments of whole words: a block copies neighbouring ones into shared memory, a word
// apart where that pays, and a thread sums a segment, a word at a time.
#pragma once

#include "kernels/rmse/cuda_copies.cuh"
#include "kernels/rmse/cuda_work.cuh"

namespace tilewire::rmse::cuda {

/// 16-byte words of a segment, and from one to the next in shared memory.
struct Padded {
  int words, pitch;
};

/// The tree over words kFirst, kFirst + kStep, ... of kPeriod, of which `words` are there: a sum for each
/// place in a word. Words that are not there count as +0, which changes no bit.
template <typename E, int kPeriod, int kStep = 1, int kFirst = 0>
__device__ void SumWords(const uint4* x, const uint4* y, int words, double (&sum)[kWord<E>]) {
  using T = typename E::Type;
  constexpr int kN = kWord<E>;
  if constexpr (kStep == kPeriod) {
    const uint4 p = x[kFirst], q = y[kFirst];
#pragma unroll
    for (int v = 0; v < kN; ++v) sum[v] = Accumulate<E>(At<T>(p, v), At<T>(q, v), 0, 0.0);
  } else {
    SumWords<E, kPeriod, kStep * 2, kFirst>(x, y, words, sum);
    if (kFirst + kStep >= words) return;
    double other[kN];
    SumWords<E, kPeriod, kStep * 2, kFirst + kStep>(x, y, words, other);
#pragma unroll
    for (int v = 0; v < kN; ++v) sum[v] = __dadd_rn(sum[v], other[v]);
  }
}

/// Segments of more than kPeriod / 2 words and up to kPeriod, at most 32, so that each accumulator has one
/// element. A thread a segment; shared memory for `pitch` words of both operands a thread.
template <typename E, int kPeriod>
__global__ void PaddedKernel(const __grid_constant__ Work work, const __grid_constant__ Padded c) {
  LetFinishStart();
  extern __shared__ uint4 padded[];
  const auto threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  const int64_t first = work.range.segment_begin + (work.block_base + blockIdx.x) * threads;
  const auto segments = static_cast<int>(min(work.range.segment_end - first, static_cast<int64_t>(threads)));
  const char *a = work.a + first * c.words * 16, *b = work.b + first * c.words * 16;
  uint4 *const x = padded, *const y = padded + threads * c.pitch;
  const int down = threads / c.words, along = threads - down * c.words;
  int segment = thread / c.words, word = thread - segment * c.words;
#pragma unroll 4
  for (int w = thread; w < segments * c.words; w += threads) {
    const int place = segment * c.pitch + word;
    CopyPiece<16>(reinterpret_cast<char*>(x + place), a + w * 16, true);
    CopyPiece<16>(reinterpret_cast<char*>(y + place), b + w * 16, true);
    segment += down;
    word += along;
    if (word >= c.words) word -= c.words, ++segment;
  }
  EndCopies();
  WaitForCopies<0>();
  __syncthreads();
  if (thread >= segments) return;
  double sum[kWord<E>];
  SumWords<E, kPeriod>(x + thread * c.pitch, y + thread * c.pitch, c.words, sum);
  Fold<kWord<E>>(sum);
  Store(work, first + thread, 0, sum[0]);
}

}  // namespace tilewire::rmse::cuda
