// Copy, step 6, and transpose, step 8: the product's kernels, contract transpose.1.
// kernels/transpose/README.md tells how they work.
#include "kernels/ladder/steps.h"
#include "kernels/transpose/transpose_cuda.h"

namespace tilewire::ladder {
namespace {

template <int32_t kFirst, int32_t kSecond>
cudaError_t Run(const float* in, float* out, int64_t rows, int64_t columns, const gpu::Launcher& launcher) {
  const int64_t dims[] = {rows, columns};
  const int32_t axes[] = {kFirst, kSecond};
  const auto spec = MakeSpec(DType::kF32, dims);
  if (!spec) return cudaErrorInvalidValue;
  const auto plan = transpose::Plan::Make(*spec, axes);
  if (!plan) return cudaErrorInvalidValue;
  return transpose::CudaRange(*plan, plan->whole(), in, out, launcher);
}

}  // namespace

constinit const MatrixStep kCopyOurs = {
    .info = {.name = "6_ours",
             .idea = "The identity permutation is recognised and becomes one cudaMemcpyAsync."},
    .transposes = false,
    .run = Run<0, 1>};

constinit const MatrixStep kTransposeOurs = {
    .info = {.name = "8_ours",
             .idea = "64 × 64 tiles with 16-byte accesses on both sides and tiles in the order that "
                     "completes cache lines early."},
    .run = Run<1, 0>};

}  // namespace tilewire::ladder
