// RingKernel for every kind of element.
#include "kernels/rmse/cuda_launch.cuh"
#include "kernels/rmse/cuda_ring.cuh"

namespace tilewire::rmse::cuda {

cudaError_t LaunchRing(const Choice& choice, const Work& work, const gpu::Launcher& launcher) {
  return WithKind(choice.kind, [&](auto kind) {
    return WithShape<kRingShapes<kind()>.size()>(choice.shape, [&](auto shape) {
      constexpr RingShape kShape = kRingShapes<kind()>[shape()];
      return LaunchBlocks(
          launcher,
          RingKernel<Element<kind()>, kShape.of, kShape.piece, kShape.depth, kShape.threads, kShape.blocks>,
          choice, work, choice.ring);
    });
  });
}

}  // namespace tilewire::rmse::cuda
