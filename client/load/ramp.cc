#include "client/load/ramp.h"

#include <algorithm>

namespace tilewire::load {
namespace {

constexpr double kAchieved = 0.95;
/// Rates under this share of the first are not worth finding.
constexpr double kLowestShare = 1.0 / 1024;

}  // namespace

bool Holds(const RampStep& step, double bound_us) {
  return step.clean && step.latency_us <= bound_us && step.achieved >= kAchieved * step.rate;
}

RampResult FindBestRate(const RampOptions& options,
                        const std::function<bool(double rate, RampStep*)>& measure) {
  RampResult result;
  const auto holds = [&](double rate) {
    for (int attempt = 0; attempt < 2; ++attempt) {
      RampStep step{.rate = rate};
      if (result.stopped || !measure(rate, &step)) {
        result.stopped = true;
        return false;
      }
      step.held = Holds(step, options.bound_us);
      result.steps.push_back(step);
      if (step.held) {
        result.best_rate = std::max(result.best_rate, rate);
        return true;
      }
    }
    return false;
  };
  double too_high = 0;  // 0: not known yet
  double rate = std::min(options.start_rate, options.max_rate);
  while (!result.stopped && static_cast<int>(result.steps.size()) < options.max_steps) {
    if (!holds(rate)) too_high = rate;
    if (too_high == 0) {
      if (rate >= options.max_rate) break;
      rate = std::min(rate * 2, options.max_rate);
    } else if (result.best_rate == 0) {
      rate /= 2;
      if (rate < options.start_rate * kLowestShare) break;
    } else {
      if (too_high <= result.best_rate * (1 + options.resolution)) break;
      rate = (result.best_rate + too_high) / 2;
    }
  }
  return result;
}

}  // namespace tilewire::load
