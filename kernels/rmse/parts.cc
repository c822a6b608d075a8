#include "kernels/rmse/parts.h"

#include <algorithm>

namespace tilewire::rmse {
namespace {

/// How many ranges a segment is cut into.
int64_t CutsOfSegment(const Plan& plan) {
  return (plan.layout().tiles - 1) / plan.range(0).tile_end + 1;
}

/// The plan of one range: whole slabs along the leading axis, or, where a segment is cut, a run of its
/// elements.
Plan PlanOf(const Plan& plan, const Range& range) {
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

Parts::Cut Parts::CutOf(const Plan& plan) {
  const Layout& layout = plan.layout();
  if (CutsOfSegment(plan) > 1 && (layout.rank > 2 || !layout.reduced[layout.rank - 1])) return Cut::kFarApart;
  return plan.range_count() == 1 ? Cut::kOne : Cut::kParts;
}

Parts::Parts(const Plan& plan) : tiles_(plan.layout().tiles) {
  // All ranges of a segment, and all segments, are alike but for the last.
  for (const int64_t index : {int64_t{0}, CutsOfSegment(plan) - 1, plan.range_count() - 1})
    plans_.push_back(PlanOf(plan, plan.range(index)));
}

Part Parts::part(const Range& range) const {
  const auto plan = std::find_if(plans_.begin(), plans_.end(), [&range](const Plan& each) {
    return each.operand().bytes() == range.byte_end - range.byte_begin;
  });
  return {.plan = &*plan,
          .first = range.segment_begin * tiles_ + range.tile_begin,
          .element = range.tile_begin * kTileElements};
}

}  // namespace tilewire::rmse
