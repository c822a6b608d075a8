// RMSE, step 7: the product's kernels, contract rmse.1. kernels/rmse/CUDA.md tells how they work.
#include "kernels/ladder/steps.h"
#include "kernels/rmse/rmse_cuda.h"

namespace tilewire::ladder {
namespace {

Result<rmse::Plan> MakePlan(int64_t n) {
  const auto spec = MakeSpec(DType::kF32, std::span(&n, 1));
  if (!spec) return tl::unexpected(spec.error());
  return rmse::Plan::Make(*spec, {}, rmse::Output::kRmse);
}

int64_t ScratchBytes(int64_t n) {
  const auto plan = MakePlan(n);
  return plan ? plan->scratch_bytes() : 0;
}

cudaError_t Run(const float* a, const float* b, int64_t n, double* result, void* scratch,
                const gpu::Launcher& launcher) {
  const auto plan = MakePlan(n);
  if (!plan) return cudaErrorInvalidValue;
  auto* tile_sums = static_cast<double*>(scratch);
  const cudaError_t error = rmse::CudaRange(*plan, plan->whole(), a, b, tile_sums, launcher);
  return error == cudaSuccess ? rmse::CudaFinish(*plan, tile_sums, result, launcher) : error;
}

}  // namespace

constinit const RmseStep kRmseOurs = {.info = {.name = "7_ours",
                                               .idea = "A fixed tree of tiles, a warp a tile: as fast as "
                                                       "memory, and the same bits on every GPU and CPU."},
                                      .scratch_bytes = ScratchBytes,
                                      .run = Run};

}  // namespace tilewire::ladder
