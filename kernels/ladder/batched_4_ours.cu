// Batched RMSE, step 4: the product's kernels over the first two axes.
#include "kernels/ladder/steps.h"
#include "kernels/rmse/rmse_cuda.h"

namespace tilewire::ladder {
namespace {

Result<rmse::Plan> MakePlan(int64_t rows, int64_t columns, int64_t batch) {
  const int64_t dims[] = {rows, columns, batch};
  const int32_t axes[] = {0, 1};
  const auto spec = MakeSpec(DType::kF32, dims);
  if (!spec) return tl::unexpected(spec.error());
  return rmse::Plan::Make(*spec, axes, rmse::Output::kRmse);
}

int64_t ScratchBytes(int64_t rows, int64_t columns, int64_t batch) {
  const auto plan = MakePlan(rows, columns, batch);
  return plan ? plan->scratch_bytes() : 0;
}

cudaError_t Run(const float* a, const float* b, int64_t rows, int64_t columns, int64_t batch, double* result,
                void* scratch, const gpu::Launcher& launcher) {
  const auto plan = MakePlan(rows, columns, batch);
  if (!plan) return cudaErrorInvalidValue;
  auto* tile_sums = static_cast<double*>(scratch);
  const cudaError_t error = rmse::CudaRange(*plan, plan->whole(), a, b, tile_sums, launcher);
  return error == cudaSuccess ? rmse::CudaFinish(*plan, tile_sums, result, launcher) : error;
}

}  // namespace

constinit const BatchedStep kBatchedOurs = {
    .info = {.name = "4_ours",
             .idea = "The contract's tiles, in binary64 and without atomics: the same bits as each batch "
                     "summed alone."},
    .scratch_bytes = ScratchBytes,
    .run = Run};

}  // namespace tilewire::ladder
