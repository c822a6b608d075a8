#include "server/engine/device/cuda/launch.h"

#include "kernels/gaussian/gaussian_cuda.h"
#include "kernels/rmse/rmse_cuda.h"
#include "kernels/transpose/transpose_cuda.h"

namespace tilewire::engine {
namespace {

cudaError_t EnqueueKind(const RmseRange& work, const gpu::Launcher& launcher) {
  return rmse::CudaRange(*work.plan, work.range, work.a, work.b, work.tile_sums, launcher);
}
cudaError_t EnqueueKind(const RmseFinish& work, const gpu::Launcher& launcher) {
  return rmse::CudaFinish(*work.plan, work.tile_sums, work.result, launcher);
}
cudaError_t EnqueueKind(const RmseWhole& work, const gpu::Launcher& launcher) {
  return rmse::CudaWhole(*work.plan, work.a, work.b, work.tile_sums, work.result, launcher);
}
cudaError_t EnqueueKind(const TransposeRange& work, const gpu::Launcher& launcher) {
  return transpose::CudaRange(*work.plan, work.range, work.in, work.out, launcher);
}
cudaError_t EnqueueKind(const GaussianRange& work, const gpu::Launcher& launcher) {
  return gaussian::CudaRange(*work.plan, work.range, work.in, work.out, launcher);
}

}  // namespace

cudaError_t Enqueue(const Work& work, const gpu::Launcher& launcher) {
  return std::visit([&launcher](const auto& kind) { return EnqueueKind(kind, launcher); }, work);
}

}  // namespace tilewire::engine
