// Device code of rmse.cu: combining sums in adjacent pairs, and the end of each segment.
#pragma once

#include "kernels/rmse/cuda_work.cuh"

namespace tilewire::rmse::cuda {

inline constexpr int kFinishThreads = 1024;  // of a block that combines a chunk, at most
inline constexpr int kFinishEach = 8;        // neighbouring sums that a thread reads
/// Sums that one block combines: a power of two, so chunks are whole subtrees.
inline constexpr int kFinishChunk = kFinishThreads * kFinishEach;
inline constexpr int kFinishFew = 16;  // up to here a thread combines a segment alone
inline constexpr int kFinishFewThreads = 256;

struct FinishWork {
  double* sums;  ///< [segment][pitch]
  double* result;
  int64_t segments;
  int64_t pitch;
  int64_t count;       ///< sums of a segment that are left
  int64_t stride;      ///< places from one of them to the next
  int64_t block_base;  ///< added to blockIdx.x
  Ending ending;
};

/// A thread's segment, of at most kFinishFew sums. Missing sums are +0, which changes no bit: no sum is -0.
__device__ inline void FinishSegment(const FinishWork& work) {
  const int64_t segment = (work.block_base + blockIdx.x) * kFinishFewThreads + threadIdx.x;
  if (segment >= work.segments) return;
  const double* sums = work.sums + segment * work.pitch;
  double sum[kFinishFew];
#pragma unroll
  for (int i = 0; i < kFinishFew; ++i) sum[i] = i < work.count ? sums[i * work.stride] : 0.0;
  FoldPairs<kFinishFew>(sum);
  work.result[segment] = Finished(work.ending, sum[0]);
}

/// The tree over a warp's neighbouring sums.
__device__ inline double WarpPairs(double sum) {
#pragma unroll
  for (int lanes = 1; lanes < 32; lanes *= 2) sum = __dadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, lanes));
  return sum;
}

/// A block's chunk. One that starts at a multiple of a power of two is a subtree of the whole; the places
/// that the last one lacks count as +0. The sum goes to the chunk's own first place, so blocks never touch
/// each other's data; the next pass finds it kFinishChunk strides on.
__device__ inline void FinishChunk(const FinishWork& work) {
  __shared__ double sums[kFinishThreads / 32];
  const int64_t chunks = (work.count + kFinishChunk - 1) / kFinishChunk;
  const int64_t block = work.block_base + blockIdx.x;
  const int64_t segment = block / chunks, first = block % chunks * kFinishChunk;
  double* place = work.sums + segment * work.pitch + first * work.stride;
  const int64_t mine = static_cast<int64_t>(threadIdx.x) * kFinishEach;
  double part[kFinishEach];
#pragma unroll
  for (int i = 0; i < kFinishEach; ++i)
    part[i] = first + mine + i < work.count ? place[(mine + i) * work.stride] : 0.0;
  FoldPairs<kFinishEach>(part);
  double sum = WarpPairs(part[0]);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = WarpPairs(threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0.0);
  if (threadIdx.x != 0) return;
  if (chunks == 1) {
    work.result[segment] = Finished(work.ending, sum);
  } else {
    *place = sum;
  }
}

/// A thread for each segment, or a block for each chunk of one.
template <bool kChunks>
__global__ void __launch_bounds__(kChunks ? kFinishThreads : kFinishFewThreads)
    FinishKernel(const FinishWork work) {
  WaitForSums();
  if constexpr (kChunks) {
    FinishChunk(work);
  } else {
    FinishSegment(work);
  }
}

}  // namespace tilewire::rmse::cuda
