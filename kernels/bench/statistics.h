// From timed runs to figures, and when to stop timing.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tilewire::bench {

/// What many runs of one thing took; seconds. All fields are 0 without runs.
struct Summary {
  int runs = 0;
  double min = 0, quarter = 0, median = 0, mean = 0, three_quarters = 0, max = 0;
  /// Inter-quartile range ÷ median: how much single runs differ.
  double spread() const;
  /// How far the median itself may be off, relative: spread ÷ √runs. Falls with more runs where spread does
  /// not.
  double uncertainty() const;
};

/// Value below which the share `q` (0 to 1) of `sorted` (ascending) lies, linear between neighbours; 0 when
/// empty.
double Quantile(std::span<const double> sorted, double q);
Summary Summarize(std::vector<double> seconds);
/// 0 when empty; values must be > 0.
double GeometricMean(std::span<const double> values);

/// When enough runs were timed. A measurement ends, at the earliest after `min_runs` and `min_seconds` of
/// measured time, when Summary::uncertainty() ≤ `noise`; at the latest after `max_runs` or `max_seconds` of
/// wall time, the latter not before kFewestRuns.
struct StoppingRule {
  static constexpr int kFewestRuns = 3;
  double noise = 0.003;
  double min_seconds = 0.01;
  double max_seconds = 0.5;
  int min_runs = 11;
  int max_runs = 2000;
};

enum class Stop : uint8_t { kNotYet, kQuiet, kMaxRuns, kMaxTime };
/// "quiet", "runs", "time".
std::string_view Name(Stop stop);

/// `seconds`: the runs so far; `wall_seconds`: since the measurement began, with everything between runs.
Stop ShouldStop(const StoppingRule& rule, const std::vector<double>& seconds, double wall_seconds);

}  // namespace tilewire::bench
