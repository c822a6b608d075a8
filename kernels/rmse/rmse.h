// RMSE, contract `rmse.1`: root mean squared error over any set of axes, the same bits however it is
// computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/array/host_device.h"
#include "kernels/array/shape.h"

namespace tilewire::rmse {

inline constexpr std::string_view kNumericVersion = "rmse.1";
/// A segment is cut into tiles of this many consecutive elements; the last may be short.
inline constexpr int64_t kTileElements = 4096;
/// Element i of a tile goes to accumulator i mod kAccumulators.
inline constexpr int64_t kAccumulators = 256;

enum class Output : uint8_t { kRmse = 0, kMse = 1, kSumSquares = 2 };

/// Canonical geometry: unit axes dropped, neighbours of one kind fused, so batch and reduced axes alternate.
/// Plain data, passed to CUDA kernels by value.
struct Layout {
  int rank = 0;                    ///< canonical axes
  int64_t dims[kMaxRank] = {};     ///< extents, outermost first
  int64_t strides[kMaxRank] = {};  ///< in elements (row-major)
  bool reduced[kMaxRank] = {};     ///< whether the axis is summed over
  int64_t segments = 1;            ///< product of the batch extents
  int64_t elements = 1;            ///< of one segment: product of the reduced extents
  int64_t tiles = 1;               ///< of one segment: ceil(elements / kTileElements)
};

/// The unit of compute: tiles [tile_begin, tile_end) of segments [segment_begin, segment_end). It may run as
/// soon as bytes [byte_begin, byte_end) of both operands are on the device. Chosen from the shape alone.
struct Range {
  int64_t segment_begin, segment_end;
  int64_t tile_begin, tile_end;
  int64_t byte_begin, byte_end;
  TILEWIRE_HOST_DEVICE constexpr int64_t items() const {
    return (segment_end - segment_begin) * (tile_end - tile_begin);
  }
};

/// Quotient and remainder of numbers >= 0; 32-bit division where it suffices, which is several times cheaper.
TILEWIRE_HOST_DEVICE constexpr int64_t DivMod(int64_t x, int64_t d, int64_t* remainder) {
  if (((x | d) >> 32) == 0) {
    const auto q = static_cast<uint32_t>(x) / static_cast<uint32_t>(d);
    *remainder = static_cast<uint32_t>(x) - q * static_cast<uint32_t>(d);
    return q;
  }
  const int64_t q = x / d;
  *remainder = x - q * d;
  return q;
}

/// Where an element lies: the offset in elements of row-major index `index` over the axes of one kind, the
/// innermost `skip` axes left out. Element `i` of segment `s` is at AxesOffset(layout, false, 0, s) +
/// AxesOffset(layout, true, 0, i).
TILEWIRE_HOST_DEVICE constexpr int64_t AxesOffset(const Layout& layout, bool reduced, int skip,
                                                  int64_t index) {
  int64_t offset = 0;
  for (int axis = layout.rank - 1 - skip; axis >= 0 && index != 0; --axis) {
    if (layout.reduced[axis] != reduced) continue;
    int64_t at = 0;
    index = DivMod(index, layout.dims[axis], &at);
    offset += at * layout.strides[axis];
  }
  return offset;
}

/// Everything about one RMSE that follows from dtype, shape and axes. Immutable, thread-safe.
class Plan {
 public:
  /// `axes`: the axes to reduce, in any order, negative from the end; empty = all.
  /// INVALID_ARGUMENT for bool and complex dtypes, a repeated axis or one out of range.
  static Result<Plan> Make(const ArraySpec& operand, std::span<const int32_t> axes, Output output);

  const ArraySpec& operand() const { return operand_; }
  /// f64, the batch axes in order (unit ones kept).
  const ArraySpec& result() const { return result_; }
  Output output() const { return output_; }
  const Layout& layout() const { return layout_; }
  /// Tile sums: segments × tiles doubles, indexed [segment][tile].
  int64_t scratch_bytes() const { return layout_.segments * layout_.tiles * 8; }

  /// Ranges are ordered by byte_begin and cover every tile of every segment exactly once.
  int64_t range_count() const { return range_count_; }
  Range range(int64_t index) const;
  /// Everything as one range: for operands that are on the device already.
  Range whole() const;

 private:
  ArraySpec operand_, result_;
  Output output_ = Output::kRmse;
  Layout layout_;
  int64_t range_count_ = 1;
  int64_t segments_per_range_ = 1;  ///< when a range holds whole segments
  int64_t tiles_per_range_ = 1;     ///< when a segment is cut over several ranges
};

/// Writes the tile sums of items [item_begin, item_end) of `range`; an item is one tile of one segment. They
/// are numbered in the order that memory likes: segment-major, or tile-major where the innermost canonical
/// axis is a batch axis (columns). `a` and `b` point to the whole operands, aligned to the element size (only
/// bytes of the range are read). Pure and re-entrant: callers may split items over threads as they like.
void HostRange(const Plan& plan, const Range& range, int64_t item_begin, int64_t item_end, const void* a,
               const void* b, double* tile_sums);

/// How many items of `range` one of `threads` >= 1 threads should take at a time, at least 1: enough work to
/// be worth handing out, pieces enough to keep all busy, and for columns enough neighbours to read memory in
/// long rows.
int64_t HostGrain(const Plan& plan, const Range& range, int threads);

/// The tree over the `count` >= 1 tile sums of a segment: adjacent pairs, level by level; an odd last one is
/// carried up unchanged. Leaves `sums` overwritten.
double CombineTiles(double* sums, int64_t count);

/// Combines tile sums pairwise and finishes segments [segment_begin, segment_end) into `result`. Leaves
/// `tile_sums` overwritten. Segments are independent.
void HostFinish(const Plan& plan, int64_t segment_begin, int64_t segment_end, double* tile_sums,
                double* result);

}  // namespace tilewire::rmse
