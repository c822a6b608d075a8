// RMSE, step 1: a thread an element, and all of them add to one number.
#include "kernels/ladder/launch.h"
#include "kernels/ladder/steps.h"

namespace tilewire::ladder {
namespace {

constexpr int kThreads = 256;

__global__ void AtomicKernel(const float* a, const float* b, int64_t n, float* sum) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float d = a[i] - b[i];
  atomicAdd(sum, d * d);  // n of these meet at one address, and the memory does one after the other
}

cudaError_t Run(const float* a, const float* b, int64_t n, double* result, void* scratch,
                const gpu::Launcher& launcher) {
  auto* sum = static_cast<float*>(scratch);
  cudaError_t error = Zero(sum, sizeof *sum, launcher);
  if (error == cudaSuccess)
    error = launcher.Run(AtomicKernel, BlocksFor(n, kThreads), kThreads, 0, a, b, n, sum);
  return error == cudaSuccess ? LaunchRoots(sum, n, 1, result, launcher) : error;
}

}  // namespace

// n roundings of a sum that grows to n terms. Each is at most half an ulp of the sum, and they do not cancel:
// near the end whole terms are smaller than that. 2^22 elements of one magnitude lose some 10^-3, 2^28 lose
// most of the sum.
constinit const RmseStep kRmseAtomic = {
    .info =
        {.name = "1_atomic",
         .idea =
             "A thread an element, one atomic addition each: simple, and all additions queue at one address.",
         .exactness = Exactness::kTolerance,
         .tolerance = 2e-2,
         .tolerance_elements = int64_t{1} << 22},
    .scratch_bytes = [](int64_t) -> int64_t { return sizeof(float); },
    .run = Run};

}  // namespace tilewire::ladder
