#include "kernels/gaussian/problem.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tilewire::gaussian {
namespace {

class WholeGaussian final : public GaussianProblem {
 public:
  using GaussianProblem::GaussianProblem;
  Part part(int64_t) const override { return {&plan_, plan_.whole()}; }
  std::unique_ptr<Problem> Whole() const override { return nullptr; }  // it is
  int64_t range_count() const override { return 1; }
  ByteInterval range_bytes(int64_t) const override { return {0, plan_.input().bytes()}; }
};

/// Each range is a gaussian pdf of its own.
class WindowedGaussian final : public GaussianProblem {
 public:
  explicit WindowedGaussian(const Plan& plan)
      : GaussianProblem(plan), part_(PlanOf(0)), last_(PlanOf(range_count() - 1)) {}
  Part part(int64_t index) const override {
    const Plan& plan = index + 1 < range_count() ? part_ : last_;
    return {&plan, plan.whole()};
  }

 private:
  Plan PlanOf(int64_t index) const {
    const Range range = plan_.range(index);
    const ArraySpec spec = MakeSpec(plan_.input().dtype, std::array{range.end - range.begin}).value();
    return Plan::Make(spec, plan_.mean(), plan_.stddev()).value();
  }
  const Plan part_, last_;
};

}  // namespace

GaussianProblem::GaussianProblem(Plan plan) : Problem(&kDescriptor), plan_(std::move(plan)) {}

void GaussianProblem::RunHost(Step step, const Buffers& buffers, Team& team) const {
  const Part wanted = part(step.range);
  const int64_t items = HostItems(*wanted.plan, wanted.range);
  const int64_t bytes = 2 * (wanted.range.end - wanted.range.begin) * SizeOf(plan_.input().dtype);
  team.For(items, GrainOf(bytes / std::max<int64_t>(items, 1)), [&](int64_t begin, int64_t end) {
    HostRange(*wanted.plan, wanted.range, begin, end, buffers.operands[0], buffers.results[0]);
  });
}

std::unique_ptr<Problem> GaussianProblem::Whole() const {
  return std::make_unique<WholeGaussian>(plan_);
}

Result<std::unique_ptr<Problem>> GaussianProblem::Windowed() const {
  if (range_count() == 1) return NotWindowed("so few elements are one part");
  return std::make_unique<WindowedGaussian>(plan_);
}

std::unique_ptr<Problem> MakeProblem(Plan plan) {
  return std::make_unique<GaussianProblem>(std::move(plan));
}

}  // namespace tilewire::gaussian
