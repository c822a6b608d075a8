// The launches that steps 3a to 5 share: a block per kThreads elements, and another launch for the blocks'
// sums.
#pragma once

#include "kernels/ladder/launch.h"
#include "kernels/ladder/steps.h"

namespace tilewire::ladder {

/// kKernel(a, b, n, block_sums) leaves the sum of its block's kThreads squares in block_sums[blockIdx.x].
template <auto kKernel, int kThreads>
cudaError_t RunTree(const float* a, const float* b, int64_t n, double* result, void* scratch,
                    const gpu::Launcher& launcher) {
  auto* sums = static_cast<float*>(scratch);
  const unsigned blocks = BlocksFor(n, kThreads);
  const cudaError_t error = launcher.Run(kKernel, blocks, kThreads, 0, a, b, n, sums);
  return error == cudaSuccess ? LaunchFinish(sums, blocks, n, result, launcher) : error;
}

template <int kThreads>
int64_t TreeBytes(int64_t n) {
  return (int64_t{BlocksFor(n, kThreads)} + kFewerSums) * static_cast<int64_t>(sizeof(float));
}

/// A tree rounds each element's square only as often as it has levels.
constexpr StepInfo TreeInfo(std::string_view name, std::string_view idea) {
  return {.name = name,
          .idea = idea,
          .exactness = Exactness::kReproducible,
          .tolerance = 1e-5,
          .tolerance_elements = int64_t{1} << 36};
}

}  // namespace tilewire::ladder
