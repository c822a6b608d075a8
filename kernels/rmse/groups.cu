// GroupKernel for every kind of element.
#include "kernels/rmse/cuda_groups.cuh"
#include "kernels/rmse/cuda_launch.cuh"

namespace tilewire::rmse::cuda {

cudaError_t LaunchGroups(const Choice& choice, const Work& work, const gpu::Launcher& launcher) {
  return WithKind(choice.kind, [&](auto kind) {
    return WithShape<kGroupShapes.size()>(choice.shape, [&](auto shape) {
      constexpr GroupShape kShape = kGroupShapes[shape()];
      return LaunchBlocks(launcher, GroupKernel<Element<kind()>, kShape.lanes, kShape.rows>, choice, work);
    });
  });
}

}  // namespace tilewire::rmse::cuda
