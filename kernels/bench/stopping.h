// When to stop timing.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tilewire::bench {

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
