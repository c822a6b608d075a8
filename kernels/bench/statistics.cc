#include "kernels/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tilewire::bench {

double Summary::spread() const {
  return median > 0 ? (three_quarters - quarter) / median : 0;
}

double Summary::uncertainty() const {
  return runs > 0 ? spread() / std::sqrt(runs) : 0;
}

double Quantile(std::span<const double> sorted, double q) {
  if (sorted.empty()) return 0;
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = position - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

Summary Summarize(std::vector<double> seconds) {
  Summary summary;
  if (seconds.empty()) return summary;
  std::sort(seconds.begin(), seconds.end());
  summary.runs = static_cast<int>(seconds.size());
  summary.min = seconds.front();
  summary.quarter = Quantile(seconds, 0.25);
  summary.median = Quantile(seconds, 0.5);
  summary.three_quarters = Quantile(seconds, 0.75);
  summary.max = seconds.back();
  summary.mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
  return summary;
}

double GeometricMean(std::span<const double> values) {
  if (values.empty()) return 0;
  double logs = 0;
  for (const double value : values) logs += std::log(value);
  return std::exp(logs / static_cast<double>(values.size()));
}

std::string_view Name(Stop stop) {
  switch (stop) {
    case Stop::kNotYet:
      return "not yet";
    case Stop::kQuiet:
      return "quiet";
    case Stop::kMaxRuns:
      return "runs";
    case Stop::kMaxTime:
      return "time";
  }
  return "";
}

Stop ShouldStop(const StoppingRule& rule, const std::vector<double>& seconds, double wall_seconds) {
  const int runs = static_cast<int>(seconds.size());
  if (runs == 0) return Stop::kNotYet;
  if (runs >= rule.max_runs) return Stop::kMaxRuns;
  if (wall_seconds >= rule.max_seconds && runs >= StoppingRule::kFewestRuns) return Stop::kMaxTime;
  const double measured = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  if (runs < rule.min_runs || measured < rule.min_seconds) return Stop::kNotYet;
  return Summarize(seconds).uncertainty() <= rule.noise ? Stop::kQuiet : Stop::kNotYet;
}

}  // namespace tilewire::bench
