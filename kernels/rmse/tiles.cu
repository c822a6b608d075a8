// TilesKernel for every kind of element.
#include "kernels/rmse/cuda_launch.cuh"
#include "kernels/rmse/cuda_tiles.cuh"

namespace tilewire::rmse::cuda {

cudaError_t LaunchTiles(const Choice& choice, const Work& work, const gpu::Launcher& launcher) {
  return WithKind(choice.kind, [&](auto kind) {
    return WithShape<kTilesShapes.size()>(choice.shape, [&](auto shape) {
      return LaunchBlocks(launcher, TilesKernel<Element<kind()>, kTilesShapes[shape()]>, choice, work);
    });
  });
}

}  // namespace tilewire::rmse::cuda
