// Transpose, contract `transpose.1`: any permutation of up to 16 axes of any dtype.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/array/shape.h"

namespace tilewire::transpose {

inline constexpr std::string_view kNumericVersion = "transpose.1";

/// Canonical permutation: unit axes dropped, neighbours that stay neighbours fused, the element widened to up
/// to 16 bytes where the fastest axis is shared. Input axes outermost first. Plain data, passed to CUDA by
/// value.
struct Layout {
  int rank = 0;
  int element_bytes = 1;               ///< 1, 2, 4, 8 or 16, after widening
  int64_t dims[kMaxRank] = {};         ///< input extents
  int64_t in_strides[kMaxRank] = {};   ///< in (widened) elements
  int64_t out_strides[kMaxRank] = {};  ///< of the same axis in the output, in (widened) elements
};

/// The unit of compute, a band: one contiguous run of input bytes, and the sub-box of the layout that it is.
struct Range {
  int64_t byte_begin, byte_end;   ///< of the input
  int64_t in_offset, out_offset;  ///< of the box's first element, in (widened) elements
  int64_t dims[kMaxRank];         ///< extents of the box, same axes as Layout
};

/// Everything about one transpose that follows from dtype, shape and permutation. Immutable, thread-safe.
class Plan {
 public:
  /// `axes`: output axis i is input axis axes[i], negative from the end; empty = reversed order (as numpy).
  /// INVALID_ARGUMENT unless it is a permutation of all axes.
  static Result<Plan> Make(const ArraySpec& input, std::span<const int32_t> axes);

  const ArraySpec& input() const { return input_; }
  const ArraySpec& result() const { return result_; }
  const Layout& layout() const { return layout_; }

  /// Bands in order of byte_begin; they partition the input.
  int64_t range_count() const { return range_count_; }
  Range range(int64_t index) const;
  /// All bands in one, for an operand that is there already: one launch instead of range_count().
  Range whole() const;

  /// True when the canonical permutation keeps its leading axis and bands cut only that axis (or the
  /// permutation is the identity): band k then fills output bytes [byte_begin, byte_end) exactly, so output
  /// can leave early.
  bool keeps_leading_axis() const { return keeps_leading_axis_; }

 private:
  ArraySpec input_, result_;
  Layout layout_;
  int64_t range_count_ = 1;
  int cut_axis_ = 0;        ///< bands are [begin, end) of this axis at one index of each axis before it
  int64_t cut_extent_ = 1;  ///< of the cut axis, a band (the last may be shorter)
  int64_t cuts_ = 1;        ///< bands along the cut axis
  bool keeps_leading_axis_ = false;
};

/// Independent pieces of a band, about 256 KiB each, that callers may split over threads.
int64_t HostItems(const Plan& plan, const Range& range);
/// Permutes items [item_begin, item_end) of the band. `in` and `out` point to the whole arrays, aligned
/// to 16 bytes or more, and do not overlap. Pure, re-entrant.
void HostRange(const Plan& plan, const Range& range, int64_t item_begin, int64_t item_end, const void* in,
               void* out);

}  // namespace tilewire::transpose
