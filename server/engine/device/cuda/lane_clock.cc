#include "server/engine/device/cuda/lane_clock.h"

#include <algorithm>

namespace tilewire::engine {

void LaneClock::Restart(TimePoint earliest, TimePoint latest) {
  earliest_ = earliest;
  latest_ = latest;
  last_end_ = std::max(last_end_, latest);
}

LaneClock::Placed LaneClock::Place(Duration length, Duration stop, TimePoint submitted, TimePoint noticed,
                                   bool at_most) {
  length = std::max(length, Duration::zero());
  const Duration doubt = std::max(stop, Duration::zero()) / kDriftDivisor + kResolution;
  // What this completion alone says of its stop, and what the anchor adds. Where they contradict each other
  // the clocks have drifted more than expected, and the completion is right.
  const TimePoint stop_latest = noticed;
  const TimePoint stop_earliest = std::min(submitted + (at_most ? Duration::zero() : length), stop_latest);
  earliest_ = std::clamp(earliest_ + stop - doubt, stop_earliest, stop_latest);
  latest_ = std::clamp(latest_ + stop + doubt, stop_earliest, stop_latest);

  // The middle; but where work waited long in the stream the earliest point says little, while the quickest
  // of the last completions was noticed soon.
  const TimePoint stopped = latest_ - std::min((latest_ - earliest_) / 2, Duration(kNotice));
  Placed placed;
  placed.begin = std::max({stopped - length, submitted, last_end_});
  placed.end = std::max(stopped, placed.begin);
  last_end_ = placed.end;
  return placed;
}

}  // namespace tilewire::engine
