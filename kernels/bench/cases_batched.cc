// Many values: segments from tiny to huge, columns, middle axes. Bytes count the f64 results too.
#include "kernels/bench/cub_reduce.h"
#include "kernels/bench/rmse_data.h"
#include "kernels/figures/text.h"

namespace tilewire::bench {
namespace {

constexpr int64_t kElements = int64_t{1} << 27;  ///< of an operand, about: 1 GiB of f32 pairs

RmseKernel CubSegmented(int64_t segments, int64_t n) {
  constexpr int64_t kScratchBytes = 1 << 20;
  RmseKernel kernel;
  kernel.implementation = "cub f64 sums";
  kernel.note = "cub::DeviceSegmentedReduce::Reduce, then roots";
  kernel.scratch_bytes = kScratchBytes;
  kernel.tolerance = 1e-12;
  kernel.run = [segments, n](const RmseData& data, void* scratch, Stream stream) -> Status {
    const auto* a = static_cast<const float*>(data.a());
    const auto* b = static_cast<const float*>(data.b());
    size_t bytes = kScratchBytes;  // CUB says so when it needs more
    return CubSegmentedRmse(a, b, segments, n, data.result(), scratch, &bytes, stream);
  };
  return kernel;
}

/// Our case; returns its problem for peers.
RmseProblem Add(const std::string& kind, DType dtype, const std::vector<int64_t>& shape,
                const std::vector<int32_t>& axes, std::vector<Case>* cases) {
  RmseProblem problem = MakeRmseProblem(dtype, shape, axes);
  std::string name = kind + '/' + std::string(Name(dtype)) + ' ' + FormatShape(shape);
  if (shape.size() > 2) name += " over";
  for (size_t i = 0; shape.size() > 2 && i < axes.size(); ++i) name += ' ' + std::to_string(axes[i]);
  cases->push_back(RmseCase("batched", name, problem, OurRmse(problem.plan)));
  cases->push_back(RmseCase("batched", name, problem, OurRmseWhole(problem.plan)));
  return problem;
}

void AddSegments(std::vector<Case>* cases) {
  for (const int64_t n : {2, 16, 50, 100, 256, 1000, 4096, 10000, 1000000, 16777216}) {
    const RmseProblem problem = Add("segments", DType::kF32, {kElements / n, n}, {1}, cases);
    if (n == 2) continue;  // a block of CUB's a segment: 70 ms where ours takes 0.7
    const std::string name = cases->back().name;
    cases->push_back(RmseCase("batched", name, problem, CubSegmented(kElements / n, n)));
  }
  Add("segments", DType::kF32, {1000000, 16}, {1}, cases);
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kF64}) {
    for (const int64_t n : {16, 1000}) Add("segments", dtype, {kElements / n, n}, {1}, cases);
  }
}

void AddColumns(std::vector<Case>* cases) {
  for (const int64_t columns : {3, 16, 64, 1000, 4096, 1048576}) {
    Add("columns", DType::kF32, {kElements / columns, columns}, {0}, cases);
  }
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kF64}) {
    for (const int64_t columns : {3, 16, 1000})
      Add("columns", dtype, {kElements / columns, columns}, {0}, cases);
  }
}

}  // namespace

void AddBatchedCases(const CaseOptions& /*options*/, std::vector<Case>* cases) {
  Add("columns", DType::kF32, {1024, 1024, 16}, {0, 1}, cases);
  AddSegments(cases);
  AddColumns(cases);
  Add("middle", DType::kF32, {512, 512, 512}, {1}, cases);
  Add("middle", DType::kF32, {64, 4096, 512}, {1}, cases);
  Add("middle", DType::kF32, {4096, 1024, 32}, {1}, cases);
  Add("middle", DType::kF32, {64, 64, 128, 256}, {1, 2}, cases);
  Add("several", DType::kF32, {64, 64, 128, 256}, {0, 2}, cases);
  Add("several", DType::kF32, {64, 64, 128, 256}, {1, 3}, cases);
  Add("several", DType::kF32, {100, 31, 549, 2, 37}, {0, 2, 4}, cases);
}

}  // namespace tilewire::bench
