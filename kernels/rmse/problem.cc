#include "kernels/rmse/problem.h"

#include <utility>

#include "kernels/rmse/parts.h"

namespace tilewire::rmse {
namespace {

class WholeRmse final : public RmseProblem {
 public:
  using RmseProblem::RmseProblem;
  Sums sums(int64_t) const override { return {&plan_, plan_.whole(), 0}; }
  std::unique_ptr<Problem> Whole() const override { return nullptr; }  // it is
  int64_t range_count() const override { return 1; }
  ByteInterval range_bytes(int64_t) const override { return {0, plan_.operand().bytes()}; }
};

/// Each range is an RMSE of its own up to the tile sums. They go to their places among the sums of all,
/// which are finished as ever.
class WindowedRmse final : public RmseProblem {
 public:
  explicit WindowedRmse(const Plan& plan) : RmseProblem(plan), parts_(plan) {}
  Sums sums(int64_t index) const override {
    const Part part = parts_.part(plan_.range(index));
    return {part.plan, part.plan->whole(), part.first};
  }

 private:
  const Parts parts_;
};

}  // namespace

RmseProblem::RmseProblem(Plan plan)
    : Problem(&kDescriptor), plan_(std::move(plan)), operands_{plan_.operand(), plan_.operand()} {}

void RmseProblem::RunHost(Step step, const Buffers& buffers, Team& team) const {
  if (!step.is_finish()) {
    const Sums wanted = sums(step.range);
    double* const to = TileSums(buffers) + wanted.first;
    const int64_t grain = HostGrain(*wanted.plan, wanted.range, team.threads());
    team.For(wanted.range.items(), grain, [&](int64_t begin, int64_t end) {
      HostRange(*wanted.plan, wanted.range, begin, end, buffers.operands[0], buffers.operands[1], to);
    });
    if (!range_finishes()) return;
  }
  const Layout& layout = plan_.layout();
  team.For(layout.segments, GrainOf(layout.tiles * 8 + 8), [&](int64_t begin, int64_t end) {
    HostFinish(plan_, begin, end, TileSums(buffers), Values(buffers));
  });
}

std::unique_ptr<Problem> RmseProblem::Whole() const {
  return std::make_unique<WholeRmse>(plan_);
}

Result<std::unique_ptr<Problem>> RmseProblem::Windowed() const {
  switch (Parts::CutOf(plan_)) {
    case Parts::Cut::kFarApart:
      return NotWindowed(
          "values of this RMSE are over bytes that lie too far apart; the reduced axes must be the last "
          "ones");
    case Parts::Cut::kOne:
      return NotWindowed("this RMSE cannot be cut into parts that come one after the other");
    case Parts::Cut::kParts:
      break;
  }
  return std::make_unique<WindowedRmse>(plan_);
}

std::unique_ptr<Problem> MakeProblem(Plan plan) {
  return std::make_unique<RmseProblem>(std::move(plan));
}

}  // namespace tilewire::rmse
