// The launch that steps 3 to 5 share: a block per kThreads elements, one atomic a block.
#pragma once

#include "kernels/ladder/launch.h"
#include "kernels/ladder/steps.h"

namespace tilewire::ladder {

/// kKernel(a, b, n, sum) adds the squares of its block's kThreads elements to *sum.
template <auto kKernel, int kThreads>
cudaError_t RunTree(const float* a, const float* b, int64_t n, double* result, void* scratch,
                    const gpu::Launcher& launcher) {
  auto* sum = static_cast<float*>(scratch);
  cudaError_t error = Zero(sum, sizeof *sum, launcher);
  if (error == cudaSuccess) error = launcher.Run(kKernel, BlocksFor(n, kThreads), kThreads, 0, a, b, n, sum);
  return error == cudaSuccess ? LaunchRoots(sum, n, 1, result, launcher) : error;
}

/// Block sums are trees of a few levels and nearly exact; the atomic chain of n / kThreads of them is what
/// rounds.
constexpr StepInfo TreeInfo(std::string_view name, std::string_view idea) {
  return {.name = name,
          .idea = idea,
          .exactness = Exactness::kTolerance,
          .tolerance = 1e-3,
          .tolerance_elements = int64_t{1} << 28};
}

constexpr int64_t OneFloat(int64_t) {
  return sizeof(float);
}

}  // namespace tilewire::ladder
