// Device code of compare.cu: combining what is kept of tiles in adjacent pairs, and the end of each segment.
#pragma once

#include "kernels/compare/cuda_tiles.cuh"

namespace tilewire::compare::cuda {

inline constexpr int kFew = 16;  // tiles of a segment up to which a thread combines them alone
inline constexpr int kEach = 8;  // neighbouring tiles that a thread reads
/// Tiles that one block combines: a power of two, so chunks are whole subtrees.
inline constexpr int kChunk = kThreads * kEach;

struct FinishWork {
  Planes planes;  ///< [segment][pitch]
  Values values;
  Ending ending;
  int64_t segments;
  int64_t pitch;
  int64_t count;       ///< of a segment that are left
  int64_t stride;      ///< places from one of them to the next
  int64_t block_base;  ///< added to blockIdx.x
};

// What blocks with blockIdx.y = 0 to 4 combine: the three sums, the largest, the counts. Each has what is
// there where nothing is, which changes no bit (no sum is -0), and its way to the values.

struct Sum {
  double value = 0;
  __device__ static Sum Load(const Planes& planes, int which, int64_t place) {
    return {Plane(planes, which)[place]};
  }
  __device__ void Store(const Planes& planes, int which, int64_t place) const {
    Plane(planes, which)[place] = value;
  }
  __device__ Sum And(const Sum& other) const { return {__dadd_rn(value, other.value)}; }
  __device__ Sum Partner(int lanes) const { return {Shuffled(value, lanes)}; }
  __device__ void Finish(const FinishWork& work, int which, int64_t segment) const {
    FinishSum(work.values, work.ending, which, segment, value);
  }
  __device__ static double* Plane(const Planes& planes, int which) {
    return which == 0 ? planes.squares : which == 1 ? planes.magnitudes : planes.differences;
  }
};

struct Largest {
  Extreme value = {.key = 0, .index = kNoIndex};
  __device__ static Largest Load(const Planes& planes, int, int64_t place) {
    return {{.key = planes.key[place], .index = planes.index[place]}};
  }
  __device__ void Store(const Planes& planes, int, int64_t place) const {
    planes.key[place] = value.key;
    planes.index[place] = value.index;
  }
  __device__ Largest And(const Largest& other) const { return {Extreme::Of(value, other.value)}; }
  __device__ Largest Partner(int lanes) const {
    return {{.key = Shuffled(static_cast<unsigned long long>(value.key), lanes),
             .index = Shuffled(static_cast<unsigned long long>(value.index), lanes)}};
  }
  __device__ void Finish(const FinishWork& work, int, int64_t segment) const {
    FinishExtreme(work.values, work.ending, segment, value);
  }
};

struct Counted {
  unsigned long long nans = 0, unequal = 0;
  __device__ static Counted Load(const Planes& planes, int, int64_t place) {
    return {planes.nans[place], planes.unequal[place]};
  }
  __device__ void Store(const Planes& planes, int, int64_t place) const {
    planes.nans[place] = nans;
    planes.unequal[place] = unequal;
  }
  __device__ Counted And(const Counted& other) const { return {nans + other.nans, unequal + other.unequal}; }
  __device__ Counted Partner(int lanes) const { return {Shuffled(nans, lanes), Shuffled(unequal, lanes)}; }
  __device__ void Finish(const FinishWork& work, int, int64_t segment) const {
    FinishCounts(work.values, segment, nans, unequal);
  }
};

/// v[0] and v[1], v[2] and v[3], ..., and so on until one is left, in v[0].
template <int n, typename V, int kSize>
__device__ void FoldPairs(V (&v)[kSize]) {
  if constexpr (n > 1) {
#pragma unroll
    for (int i = 0; i < n / 2; ++i) v[i] = v[2 * i].And(v[2 * i + 1]);
    FoldPairs<n / 2>(v);
  }
}

template <typename V>
__device__ void FinishFew(const FinishWork& work, int which) {
  const int64_t segment = (work.block_base + blockIdx.x) * kThreads + threadIdx.x;
  if (segment >= work.segments) return;
  V v[kFew];
#pragma unroll
  for (int i = 0; i < kFew; ++i)
    if (i < work.count) v[i] = V::Load(work.planes, which, segment * work.pitch + i * work.stride);
  FoldPairs<kFew>(v);
  v[0].Finish(work, which, segment);
}

template <typename V>
__device__ V MeetInWarp(V v) {
#pragma unroll
  for (int lanes = 1; lanes < 32; lanes *= 2) v = v.And(v.Partner(lanes));
  return v;
}

/// The chunk's result goes to the chunk's own first place, so blocks never touch each other's data; the next
/// pass finds it kChunk strides on.
template <typename V>
__device__ void FinishChunk(const FinishWork& work, int which, V* met) {
  const int64_t chunks = CeilDiv(work.count, kChunk), block = work.block_base + blockIdx.x;
  const int64_t segment = block / chunks, first = block % chunks * kChunk;
  const int64_t place = segment * work.pitch + first * work.stride;
  const int64_t mine = static_cast<int64_t>(threadIdx.x) * kEach;
  V v[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    if (first + mine + i < work.count) v[i] = V::Load(work.planes, which, place + (mine + i) * work.stride);
  FoldPairs<kEach>(v);
  const V warp = MeetInWarp(v[0]);
  if (threadIdx.x % 32 == 0) met[threadIdx.x / 32] = warp;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  const V all = MeetInWarp(threadIdx.x < kThreads / 32 ? met[threadIdx.x] : V{});
  if (threadIdx.x != 0) return;
  if (chunks == 1) {
    all.Finish(work, which, segment);
  } else {
    all.Store(work.planes, which, place);
  }
}

/// A thread for each segment of at most kFew tiles.
__global__ void __launch_bounds__(kThreads) FinishFewKernel(const __grid_constant__ FinishWork work) {
  const int which = static_cast<int>(blockIdx.y);
  if (which < 3) return FinishFew<Sum>(work, which);
  which == 3 ? FinishFew<Largest>(work, which) : FinishFew<Counted>(work, which);
}

/// A block for each chunk of a segment.
__global__ void __launch_bounds__(kThreads) FinishChunkKernel(const __grid_constant__ FinishWork work) {
  __shared__ uint64_t met[kThreads / 32 * 2];  // two words each, of whichever there are
  const int which = static_cast<int>(blockIdx.y);
  if (which < 3) return FinishChunk(work, which, reinterpret_cast<Sum*>(met));
  which == 3 ? FinishChunk(work, which, reinterpret_cast<Largest*>(met))
             : FinishChunk(work, which, reinterpret_cast<Counted*>(met));
}

}  // namespace tilewire::compare::cuda
