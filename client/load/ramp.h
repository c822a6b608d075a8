// Finds the highest rate whose latency stays within a bound.
#pragma once

#include <functional>
#include <vector>

namespace tilewire::load {

/// What a rate gave.
struct RampStep {
  double rate = 0;        ///< asked for, calls a second
  double achieved = 0;    ///< good calls a second
  double latency_us = 0;  ///< at the percentile that is bounded
  bool supported = true;  ///< by enough calls; else that is the longest one
  bool clean = true;      ///< no errors, no wrong answers
  bool held = false;      ///< filled in by FindBestRate
};

/// Whether a rate holds: no call failed, at least 95% of it was achieved, and the latency keeps the bound.
bool Holds(const RampStep& step, double bound_us);

struct RampOptions {
  double start_rate = 10, max_rate = 1e6;
  double bound_us = 0;
  double resolution = 0.05;  ///< ends when the best rate is known that well
  int max_steps = 40;
};

struct RampResult {
  double best_rate = 0;  ///< 0: no rate held
  std::vector<RampStep> steps;
  bool stopped = false;  ///< by `measure`
};

/// Doubles the rate until one does not hold, then halves the interval between the best one that held and the
/// lowest that did not; where already the first does not hold, halves it until one does. One that does not
/// hold is measured a second time, so that a single hiccup decides nothing. `measure(rate, step)` returns
/// false to stop.
RampResult FindBestRate(const RampOptions& options,
                        const std::function<bool(double rate, RampStep*)>& measure);

}  // namespace tilewire::load
