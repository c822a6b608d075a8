// One value of two whole arrays: every dtype, every size, and CUB beside us.
#include <cmath>
#include <limits>

#include "kernels/bench/cub_reduce.h"
#include "kernels/bench/rmse_data.h"
#include "kernels/figures/text.h"

namespace tilewire::bench {
namespace {

/// CUB over one f32 vector pair; what it needs as scratch depends on the device, so room is left for any.
RmseKernel Cub(CubSum sum, int64_t n) {
  constexpr int64_t kScratchBytes = 16 << 20;
  RmseKernel kernel;
  kernel.implementation = sum == CubSum::kFloat ? "cub f32 sums" : "cub f64 sums";
  kernel.note = "cub::DeviceReduce::TransformReduce";
  kernel.scratch_bytes = kScratchBytes;
  kernel.tolerance = sum == CubSum::kFloat ? 1e-4 : 1e-12;
  kernel.run = [sum, n](const RmseData& data, void* scratch, Stream stream) -> Status {
    const auto* a = static_cast<const float*>(data.a());
    const auto* b = static_cast<const float*>(data.b());
    size_t bytes = kScratchBytes;  // CUB says so when it needs more
    return CubRmse(sum, a, b, n, data.result(), scratch, &bytes, stream);
  };
  return kernel;
}

void AddF32(const std::string& name, const std::vector<int64_t>& shape, bool with_cub,
            std::vector<Case>* cases) {
  const RmseProblem problem = MakeRmseProblem(DType::kF32, shape, {});
  cases->push_back(RmseCase("rmse", name, problem, OurRmse(problem.plan)));
  cases->push_back(RmseCase("rmse", name, problem, OurRmseWhole(problem.plan)));
  if (!with_cub) return;
  for (const CubSum sum : {CubSum::kFloat, CubSum::kDouble}) {
    cases->push_back(RmseCase("rmse", name, problem, Cub(sum, problem.plan.operand().shape.elements())));
  }
}

}  // namespace

void AddRmseCases(const CaseOptions& /*options*/, std::vector<Case>* cases) {
  AddF32("f32/2048x2048", {2048, 2048}, true, cases);
  // 4 KiB to 4 GiB an operand, in steps of four.
  for (int64_t bytes = 4 << 10; bytes <= int64_t{4} << 30; bytes *= 4) {
    const bool with_cub = bytes == 64 << 10 || bytes == int64_t{1} << 30;
    AddF32("f32/" + FormatBytes(bytes), {bytes / 4}, with_cub, cases);
  }
  for (const DTypeInfo& info : AllDTypes()) {
    if (!IsReal(info.dtype)) continue;
    const RmseProblem problem = MakeRmseProblem(info.dtype, {(int64_t{1} << 28) / info.size}, {});
    cases->push_back(
        RmseCase("rmse_dtypes", std::string(info.name) + "/256 MiB", problem, OurRmse(problem.plan)));
  }
}

}  // namespace tilewire::bench
