// What calls of an open or closed loop found, and whether that is what a server owes that has too many.
#pragma once

#include <vector>

#include "tests/bench/open_loop.h"
#include "tests/bench/report.h"

namespace tilewire::bench {

/// Of the calls that were due in a loop's time.
struct Found {
  double offered = 0, good = 0, busy = 0, held = 0, late = 0, unsent = 0, other = 0;  ///< a second
  double p50_ms = 0, p99_ms = 0;                                                      ///< of what was good
  double own_ms = 0;  ///< the 99th percentile of what of these may be the generator's own
  double cpu = 0;     ///< the server's, seconds a second
};

/// Of those due in the first `seconds`, for which the server needed `cpu_seconds`.
Found Summarise(const std::vector<CallEnd>& calls, double seconds, double cpu_seconds);

/// Seconds after `since` until calls go well again: nine of ten of every later tenth of a second do.
double RecoverySeconds(const std::vector<CallEnd>& calls, double since, double good_ms);

/// What a closed loop gets, or two of them do: the machine's cores may be others' meanwhile.
struct Peak {
  double good = 0, p99_ms = 0, call_us = 0;
  static Peak Of(const Found& closed) { return {closed.good, closed.p99_ms, 1e6 * closed.cpu / closed.good}; }
  static Peak Mean(const Peak& a, const Peak& b) {
    return {(a.good + b.good) / 2, (a.p99_ms + b.p99_ms) / 2, (a.call_us + b.call_us) / 2};
  }
};

/// A load beside its peak, which is that of the closed loops before and after it.
struct Load {
  Found found;
  Peak peak;
  double recovery_ms = 0;
  double refusal_us = 0;  ///< 0: too few were refused to tell
  double slow_ms = 0;     ///< what the machine itself took meanwhile

  double of_peak() const { return found.good / peak.good; }
  double of_p99() const { return found.p99_ms / peak.p99_ms; }
  /// Whether that is what the server owes: 90% of the peak, or 70% where a call costs less than ten
  /// refusals, twice its p99, and recovery within a second.
  bool IsKept() const;
  Report::Values Values() const;
};

/// Each figure the median of those of `loads`, which are alike and at least one; ratios are medians of
/// ratios, so that a core that becomes faster from load to load is no difference. `peak` is of no load then:
/// what gives these ratios.
Load MedianOf(const std::vector<Load>& loads);

}  // namespace tilewire::bench
