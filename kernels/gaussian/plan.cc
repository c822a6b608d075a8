// Validation, and how the array is cut into ranges.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "kernels/gaussian/gaussian.h"

namespace tilewire::gaussian {
namespace {

// A range waits for all of its bytes and costs a launch. A power of two, so that ranges and blocks of
// transfer begin together and every range begins at a 16-byte boundary.
constexpr int64_t kRangeBytes = int64_t{2} << 20;
constexpr int64_t kMaxRanges = int64_t{64} << 10;  // beyond, ranges grow instead

int64_t RangeBytes(const ArraySpec& input) {
  int64_t bytes = kRangeBytes;
  while (input.bytes() / bytes >= kMaxRanges) bytes *= 2;
  return bytes;
}

int64_t RangeElements(const ArraySpec& input) {
  return RangeBytes(input) / SizeOf(input.dtype);
}

/// The shortest text that reads back to the same value.
std::string ToText(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return error == std::errc() ? std::string(text, end) : std::string("?");
}

}  // namespace

Result<Plan> Plan::Make(const ArraySpec& input, double mean, double stddev) {
  if (input.dtype != DType::kF32 && input.dtype != DType::kF64)
    return BadValue("dtype", Name(input.dtype), "f32 or f64");
  if (input.shape.elements() > kMaxArrayBytes / SizeOf(input.dtype))
    return BadValue("input.shape", input.shape.ToString(), "at most 2^60 bytes");
  if (!std::isfinite(mean)) return BadValue("mean", ToText(mean), "any finite number");
  if (!std::isfinite(stddev) || stddev <= 0)
    return BadValue("stddev", ToText(stddev), "any finite number greater than 0");
  Plan plan;
  plan.input_ = input;
  plan.mean_ = mean;
  plan.stddev_ = stddev;
  return plan;
}

int64_t Plan::range_count() const {
  const int64_t each = RangeElements(input_);
  return (input_.shape.elements() - 1) / each + 1;
}

Range Plan::range(int64_t index) const {
  const int64_t each = RangeElements(input_);
  return {index * each, std::min((index + 1) * each, input_.shape.elements())};
}

}  // namespace tilewire::gaussian
