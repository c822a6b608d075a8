#include "kernels/bench/stopping.h"

#include <numeric>

#include "kernels/figures/statistics.h"

namespace tilewire::bench {

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
