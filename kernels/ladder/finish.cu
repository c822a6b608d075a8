// The ends of steps that sum in f32: block sums meet, and a division and a square root follow.
#include "kernels/ladder/block_sum.cuh"
#include "kernels/ladder/launch.h"

namespace tilewire::ladder {
namespace {

constexpr int kThreads = 256;
constexpr int kLastThreads = 1024;

__global__ void RootKernel(const float* sums, double n, int64_t count, double* results) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) results[i] = sqrt(static_cast<double>(sums[i]) / n);
}

/// Block k sums every gridDim.x-th run of blockDim.x numbers, from run k on.
__device__ float StridedSum(const float* sums, int64_t count) {
  float sum = 0;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) sum += sums[i];
  return BlockSum(sum);
}

__global__ void FewerSumsKernel(const float* sums, int64_t count, float* fewer) {
  const float sum = StridedSum(sums, count);
  if (threadIdx.x == 0) fewer[blockIdx.x] = sum;
}

__global__ void LastSumKernel(const float* sums, int64_t count, double n, double* result) {
  const float sum = StridedSum(sums, count);
  if (threadIdx.x == 0) *result = sqrt(static_cast<double>(sum) / n);
}

}  // namespace

cudaError_t LaunchRoots(const float* sums, int64_t n, int64_t count, double* results,
                        const gpu::Launcher& launcher) {
  return launcher.Run(RootKernel, BlocksFor(count, kThreads), kThreads, 0, sums, static_cast<double>(n),
                      count, results);
}

cudaError_t LaunchFinish(float* sums, int64_t count, int64_t n, double* result,
                         const gpu::Launcher& launcher) {
  const float* left = sums;
  if (count >
      16 * kFewerSums) {  // too many for one block to read: other blocks add them up to kFewerSums first
    float* fewer = launcher.lists() ? nullptr : sums + count;
    const cudaError_t error = launcher.Run(FewerSumsKernel, kFewerSums, kThreads, 0, left, count, fewer);
    if (error != cudaSuccess) return error;
    left = fewer;
    count = kFewerSums;
  }
  return launcher.Run(LastSumKernel, 1, kLastThreads, 0, left, count, static_cast<double>(n), result);
}

}  // namespace tilewire::ladder
