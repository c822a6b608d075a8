// gaussian::Plan: ranges partition the array and read and write no element outside theirs; results do not
// depend on ranges or items, are the peak at most, even around a mean of 0, and NaN exactly where x is.
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/gaussian/gaussian.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using tilewire::gaussian::Plan;
using tilewire::gaussian::Range;

constexpr int64_t kMaxRangesChecked = 2000;
constexpr int64_t kMaxBytesComputed = 1 << 14;
// Small arrays have one range; now and then a larger one is worth its time, but libFuzzer is better off with
// speed.
#if TILEWIRE_FUZZ_SMALL
constexpr int64_t kMaxBytesComputedRarely = kMaxBytesComputed;
#else
constexpr int64_t kMaxBytesComputedRarely = 6 << 20;
#endif

void CheckRanges(const Plan& plan) {
  FUZZ_CHECK(plan.range_count() >= 1);
  const bool all = plan.range_count() <= kMaxRangesChecked;
  int64_t end = 0;
  for (const int64_t index : tilewire::fuzz::Sample(plan.range_count(), kMaxRangesChecked)) {
    const Range r = plan.range(index);
    FUZZ_CHECK(all ? r.begin == end : r.begin >= end);
    FUZZ_CHECK(r.end > r.begin && r.end <= plan.input().shape.elements());
    FUZZ_CHECK(HostItems(plan, r) >= 1);
    end = r.end;
  }
  FUZZ_CHECK(end == plan.input().shape.elements());
}

template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Half of the elements lie within some deviations of the mean, the rest have any bits.
template <typename T>
std::vector<T> Elements(const Plan& plan, tilewire::fuzz::Input* input) {
  std::vector<T> x(static_cast<size_t>(plan.input().shape.elements()));
  uint64_t state = input->Word(8) | 1;
  for (T& value : x) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const uint64_t bits = state ^ (state >> 29);
    if (bits % 2 == 0) {
      std::memcpy(&value, &bits, sizeof(T));
    } else {
      const double deviations = static_cast<double>(static_cast<int64_t>(bits)) * 0x1p-58;  // within ±32
      value = static_cast<T>(plan.mean() + deviations * plan.stddev());
    }
  }
  return x;
}

template <typename T>
void CheckValues(const Plan& plan, tilewire::fuzz::Input* input) {
  const std::vector<T> x = Elements<T>(plan, input);
  std::vector<T> expected(x.size()), y(x.size(), T(-7));
  HostRange(plan, plan.whole(), 0, HostItems(plan, plan.whole()), x.data(), expected.data());
  for (int64_t index = 0; index < plan.range_count(); ++index) {
    const Range r = plan.range(index);
    std::vector<T> spoilt(x.size(), T(1));
    std::copy(x.begin() + r.begin, x.begin() + r.end, spoilt.begin() + r.begin);
    const int64_t items = HostItems(plan, r), half = input->Byte() * items / 256;
    HostRange(plan, r, half, items, spoilt.data(), y.data());
    HostRange(plan, r, 0, half, spoilt.data(), y.data());
    for (size_t i = static_cast<size_t>(r.end); i < y.size(); ++i) FUZZ_CHECK(y[i] == T(-7));
  }
  FUZZ_CHECK(SameBits(y, expected));
  // The x nearest to the mean has the greatest value of all; one unit in the last place is the contract's.
  const std::vector<T> centre(x.size(), static_cast<T>(plan.mean()));
  std::vector<T> peak(x.size());
  const bool exact_mean = static_cast<double>(centre[0]) == plan.mean();
  HostRange(plan, plan.whole(), 0, HostItems(plan, plan.whole()), centre.data(), peak.data());
  for (size_t i = 0; i < x.size(); ++i) {
    FUZZ_CHECK(std::isnan(y[i]) == std::isnan(x[i]));
    if (std::isnan(y[i])) continue;
    FUZZ_CHECK(!std::signbit(y[i]));
    if (exact_mean) FUZZ_CHECK(y[i] <= std::nextafter(peak[i], std::numeric_limits<T>::infinity()));
  }
  if (plan.mean() != 0) return;
  std::vector<T> mirrored(x.size()), again(x.size());
  for (size_t i = 0; i < x.size(); ++i) mirrored[i] = -x[i];
  HostRange(plan, plan.whole(), 0, HostItems(plan, plan.whole()), mirrored.data(), again.data());
  FUZZ_CHECK(SameBits(again, expected));
}

/// Any bits, or a handful of ordinary and of extreme numbers.
double Parameter(tilewire::fuzz::Input* input) {
  constexpr double kNumbers[] = {0,    1, 0.5, -3.25, 1e6, 5e-324, 1e-300, 1e300, -1.7976931348623157e308,
                                 1e-40};
  const int choice = input->Below(16);
  if (choice < 10) return kNumbers[choice];
  return std::bit_cast<double>(input->Word(8));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tilewire::fuzz::Input input(data, size);
  const int choice = input.Below(8);  // mostly the dtypes that are allowed
  const int dtype = choice < 3 ? 12 : choice < 6 ? 13 : 1 + input.Below(15);
  const double mean = Parameter(&input);
  const double stddev = Parameter(&input);
  const auto spec = tilewire::MakeSpec(dtype, input.Dims());
  if (!spec) return 0;
  const auto plan = Plan::Make(*spec, mean, stddev);
  const bool valid = (spec->dtype == tilewire::DType::kF32 || spec->dtype == tilewire::DType::kF64) &&
                     std::isfinite(mean) && std::isfinite(stddev) && stddev > 0;
  FUZZ_CHECK(plan.has_value() == valid);
  if (!plan) {
    tilewire::fuzz::CheckRefusal(plan.error());
    return 0;
  }
  CheckRanges(*plan);
  const int64_t most = input.Below(64) == 1 ? kMaxBytesComputedRarely : kMaxBytesComputed;
  if (spec->bytes() > most) return 0;
  if (spec->dtype == tilewire::DType::kF32)
    CheckValues<float>(*plan, &input);
  else
    CheckValues<double>(*plan, &input);
  return 0;
}
