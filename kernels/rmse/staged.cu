// StagedKernel for every kind of element.
#include "kernels/rmse/cuda_launch.cuh"
#include "kernels/rmse/cuda_staged.cuh"

namespace tilewire::rmse::cuda {

cudaError_t LaunchStaged(const Choice& choice, const Work& work, const gpu::Launcher& launcher) {
  return WithKind(choice.kind, [&](auto kind) {
    return WithShape<kStagedShapes.size()>(choice.shape, [&](auto shape) {
      constexpr StagedShape kShape = kStagedShapes[shape()];
      if constexpr (HasStaged(kind(), kShape)) {
        return LaunchBlocks(launcher, StagedKernel<Element<kind()>, kShape.by, kShape.step>, choice, work,
                            choice.staged);
      } else {
        return cudaErrorInvalidValue;
      }
    });
  });
}

}  // namespace tilewire::rmse::cuda
