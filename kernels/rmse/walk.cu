// WalkKernel for every kind of element.
#include "kernels/rmse/cuda_launch.cuh"
#include "kernels/rmse/cuda_walk.cuh"

namespace tilewire::rmse::cuda {

cudaError_t LaunchWalk(const Choice& choice, const Work& work, const gpu::Launcher& launcher) {
  return WithKind(choice.kind, [&](auto kind) {
    return WithShape<kWalkShapes.size()>(choice.shape, [&](auto shape) {
      constexpr WalkShape kShape = kWalkShapes[shape()];
      if constexpr (HasWalk(kind(), kShape)) {
        return LaunchBlocks(launcher, WalkKernel<Element<kind()>, kShape.unit, kShape.segments>, choice, work,
                            choice.walk);
      } else {
        return cudaErrorInvalidValue;
      }
    });
  });
}

}  // namespace tilewire::rmse::cuda
