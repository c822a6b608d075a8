// Every step of the teaching ladder, at a size that the L2 holds and past it.
#include <limits>

#include "kernels/bench/move_work.h"
#include "kernels/bench/rmse_data.h"
#include "kernels/figures/text.h"
#include "kernels/ladder/ladder_cuda.h"

namespace tilewire::bench {
namespace {

/// What is common to the steps that reduce.
RmseKernel FromInfo(const ladder::StepInfo& info, int64_t elements) {
  RmseKernel kernel;
  kernel.implementation = std::string(info.name);
  kernel.note = std::string(info.idea);
  kernel.reproducible = info.exactness != ladder::Exactness::kTolerance;
  if (info.exactness != ladder::Exactness::kContract) {
    // Where a step does not promise to be near, how far off it is is the lesson, not a failure.
    const bool promised = elements <= info.tolerance_elements;
    kernel.tolerance = promised ? info.tolerance : std::numeric_limits<double>::max();
  }
  return kernel;
}

void AddRmseSteps(int64_t n, std::vector<Case>* cases) {
  const RmseProblem problem = MakeRmseProblem(DType::kF32, {n}, {});
  for (const ladder::RmseStep& step : ladder::RmseSteps()) {
    RmseKernel kernel = FromInfo(step.info, n);
    kernel.scratch_bytes = step.scratch_bytes(n);
    kernel.run = [run = step.run, n](const RmseData& data, void* scratch, Stream stream) {
      const auto* a = static_cast<const float*>(data.a());
      const auto* b = static_cast<const float*>(data.b());
      return FromCuda(run(a, b, n, data.result(), scratch, stream), "running");
    };
    cases->push_back(RmseCase("ladder_rmse", "f32/" + FormatBytes(4 * n), problem, std::move(kernel)));
  }
}

void AddBatchedSteps(int64_t rows, int64_t columns, int64_t batch, std::vector<Case>* cases) {
  const std::vector<int64_t> shape = {rows, columns, batch};
  const RmseProblem problem = MakeRmseProblem(DType::kF32, shape, {0, 1});
  for (const ladder::BatchedStep& step : ladder::BatchedSteps()) {
    RmseKernel kernel = FromInfo(step.info, rows * columns);
    kernel.scratch_bytes = step.scratch_bytes(rows, columns, batch);
    kernel.run = [run = step.run, rows, columns, batch](const RmseData& data, void* scratch, Stream stream) {
      const auto* a = static_cast<const float*>(data.a());
      const auto* b = static_cast<const float*>(data.b());
      return FromCuda(run(a, b, rows, columns, batch, data.result(), scratch, stream), "running");
    };
    cases->push_back(RmseCase("ladder_batched", "f32/" + FormatShape(shape), problem, std::move(kernel)));
  }
}

void AddMatrixSteps(const std::string& group, std::span<const ladder::MatrixStep> steps, int64_t side,
                    std::vector<Case>* cases) {
  const std::vector<int64_t> shape = {side, side};
  for (const ladder::MatrixStep& step : steps) {
    MoveKernel kernel;
    kernel.implementation = std::string(step.info.name);
    kernel.note = std::string(step.info.idea);
    kernel.run = [run = step.run, side](const MoveData& data, Stream stream) {
      return FromCuda(run(data.in.as<const float>(), data.out.as<float>(), side, side, stream), "running");
    };
    const std::vector<int32_t> axes =
        step.transposes ? std::vector<int32_t>{1, 0} : std::vector<int32_t>{0, 1};
    cases->push_back(
        MoveCase(group, "f32/" + FormatShape(shape), DType::kF32, shape, axes, std::move(kernel)));
  }
}

}  // namespace

void AddLadderCases(const CaseOptions& /*options*/, std::vector<Case>* cases) {
  // 256 MiB an operand are well past the L2, and the naive steps take long enough there.
  for (const int64_t n : {int64_t{2048} * 2048, int64_t{1} << 26}) AddRmseSteps(n, cases);
  AddBatchedSteps(1024, 1024, 16, cases);
  AddBatchedSteps(2048, 2048, 16, cases);
  for (const int64_t side : {2048, 16384}) AddMatrixSteps("ladder_copy", ladder::CopySteps(), side, cases);
  for (const int64_t side : {2048, 16384})
    AddMatrixSteps("ladder_transpose", ladder::TransposeSteps(), side, cases);
}

}  // namespace tilewire::bench
