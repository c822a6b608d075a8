// Durations counted in buckets that widen with the value: any number of them in bounded memory, every
// percentile at most 1% too high.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tilewire::load {

/// Whether so many values tell a percentile (`share`, 0 to 1): at least two of them lie beyond it, so that it
/// is not just the largest one; the median and what is below always.
bool Supports(uint64_t count, double share);

/// Log-linear: 128 buckets between a power of two of nanoseconds and the next, made when first needed (some
/// 1 KiB a power of two in use, 37 KiB at most). Values are microseconds, from 1 ns to an hour; others count
/// as the nearest of these. Not thread-safe.
class Histogram {
 public:
  Histogram() = default;
  Histogram(const Histogram& other) { Merge(other); }
  Histogram& operator=(const Histogram& other);
  Histogram(Histogram&&) noexcept = default;
  Histogram& operator=(Histogram&&) noexcept = default;

  void Add(double us, uint64_t count = 1);
  void Merge(const Histogram& other);

  uint64_t count() const { return count_; }
  /// Exact; 0 while empty.
  double min() const { return count_ > 0 ? min_ : 0; }
  double max() const { return max_; }
  double mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }
  /// The smallest value that `share` (0 to 1) of the values do not exceed: at least the exact one, at most 1%
  /// more. 0 while empty.
  double Percentile(double share) const;
  /// The same; none where there are too few values to tell it.
  std::optional<double> Supported(double share) const;
  /// Upper bound and count of every bucket that holds something, ascending; neighbours are taken together
  /// until there are `at_most` (37 or more).
  std::vector<std::pair<double, uint64_t>> Buckets(size_t at_most) const;

 private:
  static constexpr int kBits = 7, kOctaves = 37;
  using Octave = std::array<uint64_t, 1 << kBits>;
  static double UpperUs(int octave, int bucket);

  std::array<std::unique_ptr<Octave>, kOctaves> octaves_;
  uint64_t count_ = 0;
  double sum_ = 0, min_ = 0, max_ = 0;
};

}  // namespace tilewire::load
