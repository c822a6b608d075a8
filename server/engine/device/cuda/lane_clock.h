// Puts work that a device has timed with its own clock on the host's clock. No CUDA here, so that it is
// tested without a device.
#pragma once

#include "server/base/timing.h"

namespace tilewire::engine {

/// The clock of one lane. The device measures how long work took, and how long after an *anchor* (a moment on
/// the lane's stream) it stopped; this keeps the anchor's place on the host's clock as an interval. Each
/// completion narrows it, because no work starts before it was submitted or stops after it was noticed, and
/// its stop is the next anchor, so that neither the drift of the two clocks nor the device's coarse numbers
/// add up. What is placed is off by as much as the quickest of the last completions was noticed late:
/// microseconds while somebody spins for it, some 50 µs after a sleep. Thread-compatible.
class LaneClock {
 public:
  using Duration = Clock::duration;
  struct Placed {
    TimePoint begin, end;
  };

  /// The anchor happened between these two points.
  LaneClock(TimePoint earliest, TimePoint latest) : earliest_(earliest), latest_(latest) {}

  /// Work that was not measured came on an idle lane, and ended between these two: the new anchor. What comes
  /// is placed behind it.
  void Restart(TimePoint earliest, TimePoint latest);
  /// Work of this length that stopped so long after the anchor. Placed within [submitted, noticed] and not
  /// before the end of what was placed last, since a lane runs its work in order. Its stop is the anchor from
  /// now on. `at_most`: the length is that of the time since other work stopped, which may have been before
  /// this was submitted.
  Placed Place(Duration length, Duration stop, TimePoint submitted, TimePoint noticed, bool at_most = false);

 private:
  /// Quartz clocks differ by some 50 millionths at worst.
  static constexpr int kDriftDivisor = 10'000;
  /// Of a time between two events (0.5 µs), doubled.
  static constexpr std::chrono::microseconds kResolution{1};
  /// What the quickest of several completions takes to be noticed on a machine that is not overloaded.
  static constexpr std::chrono::microseconds kNotice{20};

  TimePoint earliest_, latest_;  ///< of the anchor
  TimePoint last_end_ = TimePoint::min();
};

}  // namespace tilewire::engine
