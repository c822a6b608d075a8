// Validation, canonicalisation and banding: everything about a transpose that needs no data.
#include <algorithm>
#include <string>
#include <vector>

#include "kernels/transpose/transpose.h"

namespace tilewire::transpose {
namespace {

constexpr int64_t kBandBytes = int64_t{4} << 20;       // a band is at most this, where the shape allows it
constexpr int64_t kKeptBandBytes = int64_t{64} << 20;  // larger bands buy early output, up to here
constexpr int64_t kThinBandBytes = int64_t{64} << 20;  // larger bands buy longer output runs, up to here
constexpr int64_t kRunBytes = 128;  // an output run of this length wastes no memory traffic
constexpr int64_t kSectorBytes = 32;
constexpr int64_t kMaxBands = 64 << 10;

int64_t CeilDiv(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

/// Extents in input order, and the order in which the output lists them.
struct Permutation {
  std::vector<int64_t> dims;
  std::vector<int> order;  ///< output axis i is input axis order[i]
};

/// Removes the input axes where `drop` is set; their extents are already accounted for elsewhere.
Permutation Without(const Permutation& p, const std::vector<bool>& drop) {
  Permutation out;
  std::vector<int> renumbered(p.dims.size());
  for (size_t a = 0; a < p.dims.size(); ++a) {
    renumbered[a] = static_cast<int>(out.dims.size());
    if (!drop[a]) out.dims.push_back(p.dims[a]);
  }
  for (const int a : p.order)
    if (!drop[a]) out.order.push_back(renumbered[a]);
  return out;
}

Permutation WithoutUnitAxes(const Permutation& p) {
  std::vector<bool> drop(p.dims.size());
  for (size_t a = 0; a < p.dims.size(); ++a) drop[a] = p.dims[a] == 1;
  return Without(p, drop);
}

/// Axes that follow each other in the input and in the output are one axis.
Permutation WithFusedNeighbours(Permutation p) {
  std::vector<bool> drop(p.dims.size());
  for (size_t i = p.order.size(); i-- > 1;) {
    const int slow = p.order[i - 1], fast = p.order[i];
    if (fast != slow + 1) continue;
    p.dims[slow] *= p.dims[fast];
    drop[fast] = true;
  }
  return Without(p, drop);
}

Layout Canonicalise(const ArraySpec& input, const std::vector<int>& axes) {
  Permutation p{{input.shape.dims().begin(), input.shape.dims().end()}, axes};
  p = WithFusedNeighbours(WithoutUnitAxes(p));
  Layout layout;
  layout.element_bytes = SizeOf(input.dtype);
  if (!p.dims.empty() && p.order.back() + 1 == static_cast<int>(p.dims.size())) {
    // The fastest axis is shared, so every stride of every other axis is a multiple of its extent: pairs of
    // elements stay pairs, and stay aligned.
    for (int64_t& extent = p.dims.back(); extent % 2 == 0 && layout.element_bytes < 16; extent /= 2)
      layout.element_bytes *= 2;
    p = WithoutUnitAxes(p);
  }
  if (p.dims.empty()) p = {{1}, {0}};
  layout.rank = static_cast<int>(p.dims.size());
  int64_t in_stride = 1, out_stride = 1;
  for (int i = layout.rank; i-- > 0;) {
    layout.dims[i] = p.dims[i];
    layout.in_strides[i] = in_stride;
    layout.out_strides[p.order[i]] = out_stride;
    in_stride *= p.dims[i];
    out_stride *= p.dims[p.order[i]];
  }
  return layout;
}

/// How bands cut the input: runs of `extent` indices of `axis`, at one index of each axis before it.
struct Cut {
  int axis = 0;
  int64_t extent = 1;
  int64_t cuts = 1;   ///< along the axis
  int64_t count = 1;  ///< of all bands
};

int OutputFastest(const Layout& layout) {
  return static_cast<int>(std::min_element(layout.out_strides, layout.out_strides + layout.rank) -
                          layout.out_strides);
}

/// An axis of the canonical layout leads both sides exactly if its strides agree.
bool KeepsLeadingAxis(const Layout& layout) {
  return layout.out_strides[0] == layout.in_strides[0];
}

Cut CutAt(const Layout& layout, int axis, int64_t target) {
  Cut cut;
  cut.axis = axis;
  const int64_t step_bytes = layout.in_strides[axis] * layout.element_bytes;
  const int64_t extent = std::clamp<int64_t>(target / step_bytes, 1, layout.dims[axis]);
  int64_t multiple = 1;  // of the extent, so that bands begin at whole sectors of both arrays
  if (axis == layout.rank - 1 || axis == OutputFastest(layout)) {
    for (const int64_t bytes : {kSectorBytes, kRunBytes})
      if (extent * layout.element_bytes >= bytes) multiple = bytes / layout.element_bytes;
  }
  const int64_t largest = extent == layout.dims[axis] ? extent : extent / multiple * multiple;
  // Even bands: a short last one would only cost a launch.
  const int64_t even = CeilDiv(layout.dims[axis], CeilDiv(layout.dims[axis], largest));
  cut.extent = std::min(largest, CeilDiv(even, multiple) * multiple);
  cut.cuts = CeilDiv(layout.dims[axis], cut.extent);
  cut.count = cut.cuts;
  for (int a = 0; a < axis; ++a) cut.count *= layout.dims[a];
  return cut;
}

/// The outermost axis one index of which is at most `target` bytes.
Cut CutBySize(const Layout& layout, int64_t target) {
  int axis = 0;
  while (axis < layout.rank - 1 && layout.in_strides[axis] * layout.element_bytes > target) ++axis;
  return CutAt(layout, axis, target);
}

/// Bytes of output that a band writes without a gap, at least.
int64_t OutputRunBytes(const Layout& layout, const Cut& cut) {
  const int fastest = OutputFastest(layout);
  if (fastest < cut.axis) return layout.element_bytes;
  return (fastest == cut.axis ? cut.extent : layout.dims[fastest]) * layout.element_bytes;
}

Cut ChooseCut(const Layout& layout) {
  const int64_t bytes = layout.dims[0] * layout.in_strides[0] * layout.element_bytes;
  if (KeepsLeadingAxis(layout) && layout.in_strides[0] * layout.element_bytes <= kKeptBandBytes) {
    for (int64_t target = kBandBytes;; target *= 2) {
      const Cut cut = CutAt(layout, 0, target);
      if (cut.count <= kMaxBands) return cut;
    }
  }
  int64_t target = kBandBytes;
  Cut cut = CutBySize(layout, target);
  while (cut.count > kMaxBands) cut = CutBySize(layout, target *= 2);
  // Few rows of a wide array make short output runs. Larger bands help, but eight or more should remain.
  const int64_t wanted = std::min(kRunBytes, layout.dims[OutputFastest(layout)] * layout.element_bytes);
  const int64_t limit = std::min(kThinBandBytes, bytes / 8);
  for (Cut wide = cut; OutputRunBytes(layout, wide) < wanted && (target *= 2) <= limit;) {
    wide = CutBySize(layout, target);
    if (OutputRunBytes(layout, wide) > OutputRunBytes(layout, cut)) cut = wide;
  }
  return cut;
}

}  // namespace

Result<Plan> Plan::Make(const ArraySpec& input, std::span<const int32_t> axes) {
  const int rank = input.shape.rank();
  if (input.shape.elements() > kMaxArrayBytes / SizeOf(input.dtype))
    return BadValue("input.shape", input.shape.ToString(), "at most 2^60 bytes");
  TILEWIRE_ASSIGN_OR_RETURN(std::vector<int> order, NormalizeAxes(axes, rank));
  if (order.empty())
    for (int a = rank; a-- > 0;) order.push_back(a);
  if (static_cast<int>(order.size()) != rank)
    return BadValue("axes", std::to_string(order.size()) + " axes",
                    "a permutation of all " + std::to_string(rank) + " axes of " + input.shape.ToString() +
                        ", or none to reverse them");
  std::vector<int64_t> dims;
  for (const int a : order) dims.push_back(input.shape.dim(a));

  Plan plan;
  plan.input_ = input;
  TILEWIRE_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
  plan.result_ = ArraySpec{input.dtype, shape};
  plan.layout_ = Canonicalise(input, order);
  const Cut cut = ChooseCut(plan.layout_);
  plan.cut_axis_ = cut.axis;
  plan.cut_extent_ = cut.extent;
  plan.cuts_ = cut.cuts;
  plan.range_count_ = cut.count;
  plan.keeps_leading_axis_ = cut.axis == 0 && KeepsLeadingAxis(plan.layout_);
  return plan;
}

Range Plan::range(int64_t index) const {
  Range range{};
  const int64_t begin = index % cuts_ * cut_extent_;
  std::copy_n(layout_.dims, layout_.rank, range.dims);
  range.dims[cut_axis_] = std::min(cut_extent_, layout_.dims[cut_axis_] - begin);
  range.in_offset = begin * layout_.in_strides[cut_axis_];
  range.out_offset = begin * layout_.out_strides[cut_axis_];
  int64_t outer = index / cuts_;
  for (int a = cut_axis_; a-- > 0;) {
    const int64_t at = outer % layout_.dims[a];
    outer /= layout_.dims[a];
    range.dims[a] = 1;
    range.in_offset += at * layout_.in_strides[a];
    range.out_offset += at * layout_.out_strides[a];
  }
  range.byte_begin = range.in_offset * layout_.element_bytes;
  range.byte_end =
      range.byte_begin + range.dims[cut_axis_] * layout_.in_strides[cut_axis_] * layout_.element_bytes;
  return range;
}

Range Plan::whole() const {
  Range range{};
  std::copy_n(layout_.dims, layout_.rank, range.dims);
  range.byte_end = input_.bytes();
  return range;
}

}  // namespace tilewire::transpose
