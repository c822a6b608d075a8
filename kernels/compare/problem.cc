#include "kernels/compare/problem.h"

#include <algorithm>
#include <utility>

#include "kernels/rmse/parts.h"

namespace tilewire::compare {
namespace {

class WholeCompare final : public CompareProblem {
 public:
  using CompareProblem::CompareProblem;
  Part part(int64_t) const override { return {&geometry(), geometry().whole(), 0, 0}; }
  std::unique_ptr<Problem> Whole() const override { return nullptr; }  // it is
  int64_t range_count() const override { return 1; }
  ByteInterval range_bytes(int64_t) const override { return {0, geometry().operand().bytes()}; }
};

/// Each range is a comparison of its own up to what is kept of its tiles. That goes to its place among all.
class WindowedCompare final : public CompareProblem {
 public:
  explicit WindowedCompare(const Plan& plan) : CompareProblem(plan), parts_(plan.geometry()) {}
  Part part(int64_t index) const override {
    const rmse::Part part = parts_.part(geometry().range(index));
    return {part.plan, part.plan->whole(), part.first, part.element};
  }

 private:
  const rmse::Parts parts_;
};

/// Items of one call: up to four times an RMSE's, where each thread still has sixteen, since a call looks up
/// where its largest |d| are: the fewer times, the more tiles it has.
int64_t Grain(const Part& part, int threads) {
  constexpr int64_t kMost = 4, kCalls = 16;
  const int64_t grain = rmse::HostGrain(*part.plan, part.range, threads);
  return grain * std::clamp<int64_t>(part.range.items() / (grain * kCalls * threads), 1, kMost);
}

}  // namespace

CompareProblem::CompareProblem(Plan plan)
    : Problem(&kDescriptor), plan_(std::move(plan)), operands_{geometry().operand(), geometry().operand()} {}

Planes CompareProblem::PlanesIn(const Buffers& buffers, int64_t first) const {
  const rmse::Layout& layout = geometry().layout();
  return Planes::In(buffers.scratch, plan_.kept(), layout.segments * layout.tiles, first);
}

Values CompareProblem::ValuesIn(const Buffers& buffers) const {
  Values values;
  for (size_t i = 0; i < plan_.metrics().size(); ++i)
    values.of[static_cast<size_t>(plan_.metrics()[i])] = buffers.results[i];
  return values;
}

void CompareProblem::RunHost(Step step, const Buffers& buffers, Team& team) const {
  const Values values = ValuesIn(buffers);
  if (!step.is_finish()) {
    const Part wanted = part(step.range);
    const int64_t grain = Grain(wanted, team.threads());
    const auto *a = buffers.operands[0], *b = buffers.operands[1];
    if (!has_scratch()) {
      team.For(wanted.range.items(), grain, [&](int64_t begin, int64_t end) {
        HostSegments(*wanted.plan, wanted.range, plan_.kept(), begin, end, a, b, wanted.first, values);
      });
      return;
    }
    const Planes planes = PlanesIn(buffers, wanted.first);
    team.For(wanted.range.items(), grain, [&](int64_t begin, int64_t end) {
      HostRange(*wanted.plan, wanted.range, plan_.kept(), begin, end, a, b, wanted.element, 0, planes);
    });
    if (!range_finishes()) return;
  }
  const rmse::Layout& layout = geometry().layout();
  const int64_t bytes = layout.tiles * 8 * PlaneCount(plan_.kept());
  team.For(layout.segments, GrainOf(bytes), [&](int64_t begin, int64_t end) {
    HostFinish(geometry(), plan_.kept(), begin, end, PlanesIn(buffers, 0), values);
  });
}

std::unique_ptr<Problem> CompareProblem::Whole() const {
  return std::make_unique<WholeCompare>(plan_);
}

Result<std::unique_ptr<Problem>> CompareProblem::Windowed() const {
  switch (rmse::Parts::CutOf(geometry())) {
    case rmse::Parts::Cut::kFarApart:
      return NotWindowed(
          "values of this comparison are over bytes that lie too far apart; the reduced axes must be the "
          "last ones");
    case rmse::Parts::Cut::kOne:
      return NotWindowed("this comparison cannot be cut into parts that come one after the other");
    case rmse::Parts::Cut::kParts:
      break;
  }
  return std::make_unique<WindowedCompare>(plan_);
}

std::unique_ptr<Problem> MakeProblem(Plan plan) {
  return std::make_unique<CompareProblem>(std::move(plan));
}

}  // namespace tilewire::compare
