// Gaussian pdf, contract `gaussian.1`: y = exp(-((x - mean) / stddev)^2 / 2) / (stddev * sqrt(2 * pi)),
// element by element.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/array/shape.h"

namespace tilewire::gaussian {

inline constexpr std::string_view kNumericVersion = "gaussian.1";

/// The unit of compute: elements [begin, end). Input and output bytes of a range are the same interval.
struct Range {
  int64_t begin, end;
};

/// Everything about one gaussian pdf that follows from dtype, shape, mean and stddev. Immutable, thread-safe.
class Plan {
 public:
  /// INVALID_ARGUMENT unless the dtype is f32 or f64, `mean` finite, `stddev` finite and > 0.
  static Result<Plan> Make(const ArraySpec& input, double mean, double stddev);

  const ArraySpec& input() const { return input_; }
  /// The same dtype and shape.
  const ArraySpec& result() const { return input_; }
  double mean() const { return mean_; }
  double stddev() const { return stddev_; }

  /// Ranges are in order and partition the elements; from the shape alone, the last may be short.
  int64_t range_count() const;
  Range range(int64_t index) const;
  /// Everything as one range: for operands that are on the device already.
  Range whole() const { return {0, input_.shape.elements()}; }

 private:
  ArraySpec input_;
  double mean_ = 0, stddev_ = 1;
};

/// Independent pieces of a range that callers may split over threads.
int64_t HostItems(const Plan& plan, const Range& range);
/// Computes items [item_begin, item_end) of the range. `in` and `out` point to the whole arrays, aligned to
/// the element size; they may be the same. Pure, re-entrant. At most 1 ulp from the correctly rounded value,
/// subnormal results included; x = ±Inf gives +0, NaN the canonical quiet NaN (0x7fc00000,
/// 0x7ff8000000000000).
void HostRange(const Plan& plan, const Range& range, int64_t item_begin, int64_t item_end, const void* in,
               void* out);

}  // namespace tilewire::gaussian
