#include "server/engine/device/cuda/kernels.h"

#include <string>
#include <utility>

#include "kernels/array/kernel_info_cuda.h"
#include "kernels/ladder/ladder_cuda.h"
#include "kernels/operation/operation_cuda.h"

namespace tilewire::engine {
namespace {

/// What every group of the ladder is listed at.
constexpr int64_t kSide = 2048, kBatchedSide = 1024, kBatch = 16;

/// Lists what `run(launcher)` launches and describes it.
template <typename Run>
Result<std::vector<KernelInfo>> DescribeLaunches(int ordinal, CudaHealth* health, const Run& run) {
  TILEWIRE_RETURN_IF_ERROR(health->status());
  TILEWIRE_RETURN_IF_ERROR(health->Note(TILEWIRE_CUDA_STATUS(cudaSetDevice(ordinal))));
  std::vector<gpu::Launch> launches;
  TILEWIRE_RETURN_IF_ERROR(health->Note(TILEWIRE_CUDA_STATUS(run(gpu::Launcher(&launches)))));
  std::vector<KernelInfo> kernels(launches.size());
  for (size_t i = 0; i < launches.size(); ++i)
    TILEWIRE_RETURN_IF_ERROR(health->Note(TILEWIRE_CUDA_STATUS(gpu::Describe(launches[i], &kernels[i]))));
  return kernels;
}

/// Appends what the steps of a group launch; `run(step, launcher)` runs one.
template <typename Steps, typename Run>
Status AppendGroup(int ordinal, CudaHealth* health, const std::string& group, const std::string& shape,
                   const Steps& steps, const Run& run, std::vector<LadderKernel>* out) {
  for (const auto& step : steps) {
    TILEWIRE_ASSIGN_OR_RETURN(
        auto kernels, DescribeLaunches(ordinal, health,
                                       [&](const gpu::Launcher& launcher) { return run(step, launcher); }));
    for (KernelInfo& kernel : kernels)
      out->push_back({group, std::string(step.info.name) + ": f32 " + shape, std::move(kernel)});
  }
  return {};
}

}  // namespace

Result<std::vector<KernelInfo>> DescribeCudaWork(int ordinal, const Work& work, CudaHealth* health) {
  return DescribeLaunches(ordinal, health, [&](const gpu::Launcher& launcher) {
    return EnqueueStep(*work.problem, work.step, work.buffers, launcher);
  });
}

Result<std::vector<LadderKernel>> DescribeCudaLadder(int ordinal, CudaHealth* health) {
  std::vector<LadderKernel> all;
  const auto append = [&](const char* group, const char* shape, const auto& steps, const auto& run) {
    return AppendGroup(ordinal, health, group, shape, steps, run, &all);
  };
  TILEWIRE_RETURN_IF_ERROR(append("ladder/rmse", "(2048, 2048)", ladder::RmseSteps(),
                                  [](const auto& step, const gpu::Launcher& launcher) {
                                    return step.run(nullptr, nullptr, kSide * kSide, nullptr, nullptr,
                                                    launcher);
                                  }));
  TILEWIRE_RETURN_IF_ERROR(append("ladder/batched", "(1024, 1024, 16) axes 0 1", ladder::BatchedSteps(),
                                  [](const auto& step, const gpu::Launcher& launcher) {
                                    return step.run(nullptr, nullptr, kBatchedSide, kBatchedSide, kBatch,
                                                    nullptr, nullptr, launcher);
                                  }));
  const auto matrix = [](const auto& step, const gpu::Launcher& launcher) {
    return step.run(nullptr, nullptr, kSide, kSide, launcher);
  };
  TILEWIRE_RETURN_IF_ERROR(append("ladder/copy", "(2048, 2048)", ladder::CopySteps(), matrix));
  TILEWIRE_RETURN_IF_ERROR(append("ladder/transpose", "(2048, 2048)", ladder::TransposeSteps(), matrix));
  return all;
}

}  // namespace tilewire::engine
