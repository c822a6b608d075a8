// Geometry of one RMSE: canonical axes, the result's spec, and how the work is cut into ranges.
#include <algorithm>
#include <string>

#include "kernels/rmse/rmse.h"

namespace tilewire::rmse {
namespace {

// A range costs a launch and a bookkeeping entry, so it should not be small; it must wait for all of its
// bytes, so it should not be large either.
constexpr int64_t kTargetRangeBytes = int64_t{2} << 20;
// Above this many targets' worth of bytes the ranges grow instead. A cut never yields more than five ranges
// per target (see CutByTiles), so no plan has more than about 40 Ki ranges.
constexpr int64_t kMaxTargets = 8192;

constexpr int64_t CeilDiv(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

// Drops unit axes and fuses neighbours of one kind. Products are bounded by the checked element count.
Layout Canonicalise(const Shape& shape, const bool (&reduced)[kMaxRank]) {
  Layout layout;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t extent = shape.dim(axis);
    if (extent == 1) continue;
    (reduced[axis] ? layout.elements : layout.segments) *= extent;
    if (layout.rank > 0 && layout.reduced[layout.rank - 1] == reduced[axis]) {
      layout.dims[layout.rank - 1] *= extent;
    } else {
      layout.dims[layout.rank] = extent;
      layout.reduced[layout.rank] = reduced[axis];
      ++layout.rank;
    }
  }
  int64_t stride = 1;
  for (int axis = layout.rank - 1; axis >= 0; --axis) {
    layout.strides[axis] = stride;
    stride *= layout.dims[axis];
  }
  layout.tiles = CeilDiv(layout.elements, kTileElements);
  return layout;
}

// The outermost batch axis, where there is one, divides the array into slabs that share no segment.
struct Slabs {
  int64_t count = 1;         // extent of the leading batch axis
  int64_t elements = 1;      // of one slab
  int64_t segments = 1;      // of one slab
  int64_t rows = 1;          // extent of the slab's leading reduced axis
  int64_t row_elements = 1;  // memory from one row to the next
  int64_t row_reduced = 1;   // elements of one segment that lie in one row
};

Slabs SlabsOf(const Layout& layout) {
  Slabs slabs;
  const bool leading_batch = layout.rank > 0 && !layout.reduced[0];
  if (leading_batch) slabs.count = layout.dims[0];
  slabs.elements = layout.segments / slabs.count * layout.elements;
  slabs.segments = layout.segments / slabs.count;
  const int axis = leading_batch ? 1 : 0;
  if (axis < layout.rank) {
    slabs.rows = layout.dims[axis];
    slabs.row_elements = layout.strides[axis];
    slabs.row_reduced = layout.elements / slabs.rows;
  }
  return slabs;
}

// Tiles a range when a slab of `slab_bytes` > target is cut by tiles. With tiles of t bytes and target T the
// number of groups is at most 2·slab/T when t > T (one tile each), else at most (slab/t + 1) / (T/2t) + 1 <=
// 5·slab/T.
int64_t CutByTiles(int64_t tiles, int64_t tile_bytes, int64_t target) {
  const int64_t most = std::max<int64_t>(1, target / tile_bytes);
  return CeilDiv(tiles, CeilDiv(tiles, most));  // as even as whole tiles allow
}

}  // namespace

Result<Plan> Plan::Make(const ArraySpec& operand, std::span<const int32_t> axes, Output output) {
  if (!IsReal(operand.dtype))
    return BadValue("dtype", Name(operand.dtype), "a real dtype: i8 to u64, f16, bf16, f32, f64");
  if (static_cast<uint8_t>(output) > static_cast<uint8_t>(Output::kSumSquares))
    return BadValue("output", std::to_string(static_cast<int>(output)), "RMSE, MSE or SUM_SQUARES");
  const Shape& shape = operand.shape;
  TILEWIRE_ASSIGN_OR_RETURN(const std::vector<int> normal, NormalizeAxes(axes, shape.rank()));
  bool reduced[kMaxRank] = {};
  for (int axis = 0; axis < shape.rank(); ++axis) reduced[axis] = normal.empty();
  for (const int axis : normal) reduced[axis] = true;

  int64_t batch_dims[kMaxRank];
  size_t batch_rank = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (!reduced[axis]) batch_dims[batch_rank++] = shape.dim(axis);

  Plan plan;
  plan.operand_ = operand;
  plan.output_ = output;
  TILEWIRE_ASSIGN_OR_RETURN(plan.result_, MakeSpec(DType::kF64, std::span(batch_dims, batch_rank), "result"));
  plan.layout_ = Canonicalise(shape, reduced);

  const Layout& layout = plan.layout_;
  const Slabs slabs = SlabsOf(layout);
  const int64_t size = SizeOf(operand.dtype);
  const int64_t slab_bytes = slabs.elements * size;
  const int64_t target = std::max(kTargetRangeBytes, CeilDiv(operand.bytes(), kMaxTargets));
  if (slab_bytes > target && layout.tiles > 1) {
    plan.segments_per_range_ = slabs.segments;
    plan.tiles_per_range_ = CutByTiles(layout.tiles, kTileElements * slabs.segments * size, target);
    plan.range_count_ = slabs.count * CeilDiv(layout.tiles, plan.tiles_per_range_);
  } else {
    const int64_t most = std::max<int64_t>(1, target / slab_bytes);
    const int64_t group = CeilDiv(slabs.count, CeilDiv(slabs.count, most));
    plan.segments_per_range_ = group * slabs.segments;
    plan.tiles_per_range_ = layout.tiles;
    plan.range_count_ = CeilDiv(slabs.count, group);
  }
  return plan;
}

Range Plan::range(int64_t index) const {
  const Slabs slabs = SlabsOf(layout_);
  const int64_t size = SizeOf(operand_.dtype);
  const int64_t slab_bytes = slabs.elements * size;
  const int64_t groups = CeilDiv(layout_.tiles, tiles_per_range_);
  Range range;
  range.segment_begin = index / groups * segments_per_range_;
  range.segment_end = std::min(range.segment_begin + segments_per_range_, layout_.segments);
  range.tile_begin = index % groups * tiles_per_range_;
  range.tile_end = std::min(range.tile_begin + tiles_per_range_, layout_.tiles);
  const int64_t slab_begin = range.segment_begin / slabs.segments;
  if (groups == 1) {
    range.byte_begin = slab_begin * slab_bytes;
    range.byte_end = range.segment_end / slabs.segments * slab_bytes;
    return range;
  }
  const int64_t first = range.tile_begin * kTileElements;
  const int64_t last = std::min(range.tile_end * kTileElements, layout_.elements) - 1;
  const int64_t row_bytes = slabs.row_elements * size;
  range.byte_begin = slab_begin * slab_bytes + first / slabs.row_reduced * row_bytes;
  range.byte_end = slab_begin * slab_bytes + (last / slabs.row_reduced + 1) * row_bytes;
  return range;
}

Range Plan::whole() const {
  return Range{.segment_begin = 0,
               .segment_end = layout_.segments,
               .tile_begin = 0,
               .tile_end = layout_.tiles,
               .byte_begin = 0,
               .byte_end = operand_.bytes()};
}

}  // namespace tilewire::rmse
