#include "kernels/rmse/problem.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tilewire::rmse {
namespace {

class WholeRmse final : public RmseProblem {
 public:
  using RmseProblem::RmseProblem;
  Sums sums(int64_t) const override { return {&plan_, plan_.whole(), 0}; }
  int64_t range_count() const override { return 1; }
  ByteInterval range_bytes(int64_t) const override { return {0, plan_.operand().bytes()}; }
};

/// Each range is an RMSE of its own up to the tile sums: ranges begin at tiles, so the sums are the same
/// bits. They go to their places among the sums of all, which are finished as ever.
class WindowedRmse final : public RmseProblem {
 public:
  /// `parts`: a plan for every length that ranges have.
  WindowedRmse(const Plan& plan, std::vector<Plan> parts) : RmseProblem(plan), parts_(std::move(parts)) {}
  Sums sums(int64_t index) const override {
    const Range range = plan_.range(index);
    const auto part = std::find_if(parts_.begin(), parts_.end(), [&range](const Plan& plan) {
      return plan.operand().bytes() == range.byte_end - range.byte_begin;
    });
    return {&*part, part->whole(), range.segment_begin * plan_.layout().tiles + range.tile_begin};
  }

 private:
  std::vector<Plan> parts_;
};

/// The RMSE of one range: whole slabs along the leading axis, or, where a segment is cut, a run of its
/// elements.
Plan PartOf(const Plan& plan, const Range& range) {
  const Layout& layout = plan.layout();
  const int64_t elements = (range.byte_end - range.byte_begin) / SizeOf(plan.operand().dtype);
  std::vector<int64_t> dims{elements};
  std::vector<int32_t> axes;
  if (range.tile_end - range.tile_begin < layout.tiles) {
    axes.push_back(0);
  } else {
    for (int axis = 1; axis < layout.rank; ++axis) {
      dims[0] /= layout.dims[axis];
      dims.push_back(layout.dims[axis]);
      if (layout.reduced[axis]) axes.push_back(axis);
    }
    if (axes.empty()) {  // segments of one element; no axes at all would mean every axis
      dims.push_back(1);
      axes.push_back(1);
    }
  }
  return Plan::Make(MakeSpec(plan.operand().dtype, dims).value(), axes, plan.output()).value();
}

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
  const Layout& layout = plan_.layout();
  const Range first = plan_.range(0);
  const int64_t cuts = (layout.tiles - 1) / first.tile_end + 1;  // ranges of a segment
  if (cuts > 1 && (layout.rank > 2 || !layout.reduced[layout.rank - 1]))
    return NotWindowed(
        "values of this RMSE are over bytes that lie too far apart; the reduced axes must be the last ones");
  if (range_count() == 1)
    return NotWindowed("this RMSE cannot be cut into parts that come one after the other");
  // All ranges of a segment, and all segments, are alike but for the last.
  std::vector<Plan> parts;
  for (const int64_t index : {int64_t{0}, cuts - 1, range_count() - 1})
    parts.push_back(PartOf(plan_, plan_.range(index)));
  return std::make_unique<WindowedRmse>(plan_, std::move(parts));
}

std::unique_ptr<Problem> MakeProblem(Plan plan) {
  return std::make_unique<RmseProblem>(std::move(plan));
}

}  // namespace tilewire::rmse
