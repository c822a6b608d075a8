// Device code of rmse.cu: combining tile sums in adjacent pairs, and the end of each segment.
#pragma once

#include "kernels/rmse/rmse.h"

namespace tilewire::rmse::cuda {

inline constexpr int kFinishThreads = 256;
inline constexpr int kFinishChunk =
    1024;  // sums that one block combines: a power of two, so chunks are whole subtrees
inline constexpr int kFinishFew = 16;  // up to here a thread combines a segment alone

struct FinishWork {
  double* tile_sums;
  double* result;
  int64_t segments;
  int64_t tiles;       ///< of a segment
  int64_t count;       ///< sums of a segment that are left
  int64_t stride;      ///< tiles from one of them to the next
  int64_t block_base;  ///< added to blockIdx.x
  double elements;     ///< of a segment
  Output output;
};

__device__ inline double Finished(const FinishWork& work, double sum) {
  double value = sum;
  if (work.output != Output::kSumSquares) value = __ddiv_rn(value, work.elements);
  if (work.output == Output::kRmse) value = __dsqrt_rn(value);
  return value == value ? value : __longlong_as_double(0x7ff8000000000000ll);
}

/// A thread per segment with at most kFinishFew sums.
__global__ void __launch_bounds__(kFinishThreads) FinishFewKernel(const FinishWork work) {
  const int64_t segment = (work.block_base + blockIdx.x) * kFinishThreads + threadIdx.x;
  if (segment >= work.segments) return;
  double* sums = work.tile_sums + segment * work.tiles;
  for (int64_t n = work.count; n > 1; n -= n / 2) {
    for (int64_t i = 0; i < n / 2; ++i) sums[i] = __dadd_rn(sums[2 * i], sums[2 * i + 1]);
    if (n % 2 != 0) sums[n / 2] = sums[n - 1];
  }
  work.result[segment] = Finished(work, sums[0]);
}

/// A block per chunk. A chunk that starts at a multiple of a power of two and is full, or the last, is a
/// subtree of the whole: all pairs of its levels lie inside, and where its count is odd so is the whole's.
/// The sum goes to the chunk's own first place, so blocks never touch each other's data; the next pass finds
/// it `kFinishChunk` strides on.
__global__ void __launch_bounds__(kFinishThreads) FinishChunkKernel(const FinishWork work) {
  __shared__ double sums[kFinishChunk];
  const int64_t chunks = (work.count + kFinishChunk - 1) / kFinishChunk;
  const int64_t block = work.block_base + blockIdx.x;
  const int64_t segment = block / chunks, first = block % chunks * kFinishChunk;
  const int64_t rest = work.count - first;
  double* place = work.tile_sums + segment * work.tiles + first * work.stride;
  int n = static_cast<int>(rest < kFinishChunk ? rest : kFinishChunk);
  for (int i = threadIdx.x; i < n; i += kFinishThreads) sums[i] = place[i * work.stride];
  __syncthreads();
  while (n > 1) {
    double pair[kFinishChunk / kFinishThreads / 2];
    const int half = n / 2;
#pragma unroll
    for (int k = 0; k < kFinishChunk / kFinishThreads / 2; ++k) {
      const int i = k * kFinishThreads + threadIdx.x;
      if (i < half) pair[k] = __dadd_rn(sums[2 * i], sums[2 * i + 1]);
    }
    const double odd = sums[n - 1];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kFinishChunk / kFinishThreads / 2; ++k) {
      const int i = k * kFinishThreads + threadIdx.x;
      if (i < half) sums[i] = pair[k];
    }
    if (n % 2 != 0 && threadIdx.x == 0) sums[half] = odd;
    __syncthreads();
    n -= half;
  }
  if (threadIdx.x != 0) return;
  if (chunks == 1) {
    work.result[segment] = Finished(work, sums[0]);
  } else {
    *place = sums[0];
  }
}

}  // namespace tilewire::rmse::cuda
