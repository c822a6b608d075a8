// The end of the steps that leave single f32 sums: a division and a square root each.
#include "kernels/ladder/launch.h"

namespace tilewire::ladder {
namespace {

constexpr int kThreads = 256;

__global__ void RootKernel(const float* sums, double n, int64_t count, double* results) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) results[i] = sqrt(static_cast<double>(sums[i]) / n);
}

}  // namespace

cudaError_t LaunchRoots(const float* sums, int64_t n, int64_t count, double* results,
                        const gpu::Launcher& launcher) {
  return launcher.Run(RootKernel, BlocksFor(count, kThreads), kThreads, 0, sums, static_cast<double>(n),
                      count, results);
}

}  // namespace tilewire::ladder
