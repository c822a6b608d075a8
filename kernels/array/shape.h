// Shapes and specs. The only place where sizes are multiplied, and every product is checked.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/array/dtype.h"
#include "kernels/array/status.h"

namespace tilewire {

inline constexpr int kMaxRank = 16;
/// No array is larger; leaves room for sums of offsets in int64.
inline constexpr int64_t kMaxArrayBytes = int64_t{1} << 60;

/// Row-major extents, each ≥ 1, whose product fits. A value type; rank 0 is one element.
class Shape {
 public:
  Shape() = default;
  /// INVALID_ARGUMENT naming `field` for rank > kMaxRank, an extent < 1, or more than kMaxArrayBytes
  /// elements.
  static Result<Shape> Make(std::span<const int64_t> dims, std::string_view field = "shape");

  int rank() const { return rank_; }
  int64_t dim(int axis) const { return dims_[axis]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  int64_t elements() const { return elements_; }
  /// "(2, 3)", "()" for rank 0.
  std::string ToString() const;
  friend bool operator==(const Shape& a, const Shape& b) { return a.rank_ == b.rank_ && a.dims_ == b.dims_; }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
  int64_t elements_ = 1;
};

/// dtype and shape of an array: row-major, little-endian, contiguous.
struct ArraySpec {
  DType dtype = DType::kU8;
  Shape shape;
  int64_t bytes() const { return shape.elements() * SizeOf(dtype); }
  friend bool operator==(const ArraySpec&, const ArraySpec&) = default;
};

/// Checks the dtype number, the extents and that the bytes fit kMaxArrayBytes. `field` prefixes names in
/// messages.
Result<ArraySpec> MakeSpec(int dtype_number, std::span<const int64_t> dims, std::string_view field = "spec");
Result<ArraySpec> MakeSpec(DType dtype, std::span<const int64_t> dims, std::string_view field = "spec");

/// Axis list of a request against a rank: negative counts from the end; a repeated or foreign axis is
/// refused. The order of the request is kept.
Result<std::vector<int>> NormalizeAxes(std::span<const int32_t> axes, int rank,
                                       std::string_view field = "axes");

}  // namespace tilewire
