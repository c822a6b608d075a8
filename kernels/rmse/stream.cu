// StreamKernel for every kind of element.
#include "kernels/rmse/cuda_launch.cuh"
#include "kernels/rmse/cuda_stream.cuh"
#include "kernels/rmse/shapes.h"

namespace tilewire::rmse::cuda {

cudaError_t LaunchStream(const Choice& choice, const Work& work, const gpu::Launcher& launcher) {
  return WithKind(choice.kind, [&](auto kind) {
    constexpr auto& kShapes = kStreamShapes<SizeOf(kind())>;
    return WithShape<kShapes.size()>(choice.shape, [&](auto shape) {
      constexpr StreamShape kShape = kShapes[shape()];
      constexpr int kBlocks = kShape.batch == 4 && kShape.rounds == 1 ? 3 : 2;
      return LaunchBlocks(launcher,
                          StreamKernel<Element<kind()>, kShape.columns, kShape.vector, kShape.rounds,
                                       kShape.batch, kShape.levels, kShape.threads, kBlocks>,
                          choice, work, choice.columns);
    });
  });
}

}  // namespace tilewire::rmse::cuda
