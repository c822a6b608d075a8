// RMSE, step 2: as many threads as the GPU holds; each sums many elements in a register and adds once.
#include "kernels/ladder/launch.h"
#include "kernels/ladder/steps.h"

namespace tilewire::ladder {
namespace {

constexpr int kThreads = 256;

__global__ void ThreadSumsKernel(const float* a, const float* b, int64_t n, float* sum) {
  float mine = 0;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;  // neighbours read neighbours: whole lines a warp
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
    const float d = a[i] - b[i];
    mine += d * d;
  }
  atomicAdd(sum, mine);
}

cudaError_t Run(const float* a, const float* b, int64_t n, double* result, void* scratch,
                const gpu::Launcher& launcher) {
  static const FullGpu full = FillGpu(ThreadSumsKernel, kThreads);
  if (full.error != cudaSuccess) return full.error;
  const unsigned grid = std::min(BlocksFor(n, kThreads), static_cast<unsigned>(full.grid));
  auto* sum = static_cast<float*>(scratch);
  cudaError_t error = Zero(sum, sizeof *sum, launcher);
  if (error == cudaSuccess) error = launcher.Run(ThreadSumsKernel, grid, kThreads, 0, a, b, n, sum);
  return error == cudaSuccess ? LaunchRoots(sum, n, 1, result, launcher) : error;
}

}  // namespace

constinit const RmseStep kRmseThreadSums = {
    .info = {.name = "2_thread_sums",
             .idea =
                 "Each thread of a GPU-filling grid sums its elements in a register: one atomic a thread.",
             .exactness = Exactness::kTolerance,
             .tolerance = 1e-3,
             .tolerance_elements = int64_t{1} << 30},
    .scratch_bytes = [](int64_t) -> int64_t { return sizeof(float); },
    .run = Run};

}  // namespace tilewire::ladder
