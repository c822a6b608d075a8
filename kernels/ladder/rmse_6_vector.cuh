// Kernels of step 6 and its variants, which differ in a type, a bound or a compiler option. Unnamed
// namespace: one of the variants is compiled with other options, and its code must stay its own.
#pragma once

#include "kernels/ladder/block_sum.cuh"
#include "kernels/ladder/launch.h"
#include "kernels/ladder/steps.h"

namespace tilewire::ladder {
namespace {

constexpr int kFinishThreads = 1024;
constexpr int64_t kMaxBlocks = 4096;  // of any GPU at once, and so of scratch

__device__ inline float4 LoadQuad(const float* at) {
  return *reinterpret_cast<const float4*>(at);
}

template <typename Sum>
__device__ Sum AddSquare(Sum sum, float x, float y) {
  const Sum d = static_cast<Sum>(x) - static_cast<Sum>(y);
  return sum + d * d;
}

/// One sum a block. kMinBlocks: how many blocks of 1024 threads a multiprocessor must be able to hold.
template <typename Sum, typename Index, int kMinBlocks>
__global__ void __launch_bounds__(1024, kMinBlocks)
    VectorKernel(const float* a, const float* b, Index n, Sum* block_sums) {
  const Index threads = static_cast<Index>(gridDim.x) * blockDim.x;
  const Index thread = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  Sum sums[4] = {};  // four chains of additions: each waits for itself alone
#pragma unroll 4     // eight loads of 16 bytes in flight a thread
  for (Index quad = thread; quad < n / 4; quad += threads) {
    const float4 x = LoadQuad(a + 4 * quad), y = LoadQuad(b + 4 * quad);
    sums[0] = AddSquare(sums[0], x.x, y.x);
    sums[1] = AddSquare(sums[1], x.y, y.y);
    sums[2] = AddSquare(sums[2], x.z, y.z);
    sums[3] = AddSquare(sums[3], x.w, y.w);
  }
  const Index rest = n / 4 * 4 + thread;
  if (rest < n) sums[0] = AddSquare(sums[0], a[rest], b[rest]);
  const Sum of_block = BlockSum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  if (threadIdx.x == 0) block_sums[blockIdx.x] = of_block;
}

/// One block adds the blocks' sums, always in the same order: no atomics, so the same bits each time.
template <typename Sum>
__global__ void __launch_bounds__(kFinishThreads)
    FinishKernel(const Sum* block_sums, int blocks, Sum n, double* result) {
  Sum sum = 0;
  for (int i = threadIdx.x; i < blocks; i += kFinishThreads) sum += block_sums[i];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) *result = sqrt(sum / n);
}

template <typename Sum, typename Index, int kMinBlocks>
cudaError_t RunVector(const float* a, const float* b, int64_t n, double* result, void* scratch,
                      const gpu::Launcher& launcher) {
  constexpr auto kKernel = VectorKernel<Sum, Index, kMinBlocks>;
  static const FullGpu full = FillGpu(kKernel);
  if (full.error != cudaSuccess) return full.error;
  const int64_t grid =
      std::clamp<int64_t>(BlocksFor(n / 4, full.block), 1, std::min<int64_t>(full.grid, kMaxBlocks));
  auto* sums = static_cast<Sum*>(scratch);
  const cudaError_t error = launcher.Run(kKernel, static_cast<unsigned>(grid), full.block, 0, a, b, n, sums);
  if (error != cudaSuccess) return error;
  return launcher.Run(FinishKernel<Sum>, 1, kFinishThreads, 0, sums, grid, n, result);
}

constexpr int64_t BlockSumsBytes(int64_t) {
  return kMaxBlocks * static_cast<int64_t>(sizeof(double));
}

/// A thread's four chains have n / 2^20 terms each on a large GPU; everything after that is a tree.
constexpr StepInfo VectorInfo(std::string_view name, std::string_view idea, double tolerance) {
  return {.name = name,
          .idea = idea,
          .exactness = Exactness::kReproducible,
          .tolerance = tolerance,
          .tolerance_elements = int64_t{1} << 36};
}

}  // namespace
}  // namespace tilewire::ladder
