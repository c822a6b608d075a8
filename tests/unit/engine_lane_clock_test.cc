// Device times on the host's clock, with a device whose clock drifts and a host that notices late.
#include "server/engine/device/cuda/lane_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

namespace tilewire::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
const TimePoint kStart = TimePoint() + std::chrono::hours(1);

TimePoint At(double us) {
  return kStart + nanoseconds(static_cast<int64_t>(us * 1000));
}

/// A device that runs work in order, and a host that is told when it began and ended in truth.
class Simulation {
 public:
  /// `drift`: how much faster the device's clock runs.
  Simulation(double drift, uint64_t seed) : drift_(drift), random_(seed), clock_(At(0), At(8)) {}

  /// Work submitted at `submitted` that takes `length`; checks where it is placed. Returns how far off its
  /// end is, or its begin where that is further off.
  /// `follows`: there is no event before the work, only that after the work before it.
  LaneClock::Duration Run(double submitted, double length, double notice, bool follows = false) {
    const double began = std::max(submitted + 2 + static_cast<double>(random_() % 5), last_stop_);
    const double stopped = began + length;
    const LaneClock::Duration told = Device(follows ? stopped - anchor_ : length);
    const TimePoint noticed = std::max(At(stopped + notice), noticed_);
    noticed_ = noticed;
    const auto placed = clock_.Place(told, Device(stopped - anchor_), At(submitted), noticed, follows);
    anchor_ = stopped;
    last_stop_ = stopped;
    EXPECT_GE(placed.begin, At(submitted));
    EXPECT_LE(placed.end, noticed);
    EXPECT_LE(placed.begin, placed.end);
    EXPECT_GE(placed.begin, last_end_) << "spans of one lane overlap";
    last_end_ = placed.end;
    return std::max(std::chrono::abs(placed.end - At(stopped)), std::chrono::abs(placed.begin - At(began)));
  }

 private:
  /// As cudaEventElapsedTime tells it: the device's clock, a float of milliseconds, steps of 0.5 µs.
  LaneClock::Duration Device(double us) const {
    const double steps = std::round(us * (1 + drift_) * 2) / 2;
    const auto ms = static_cast<float>(steps / 1000);
    return nanoseconds(std::llround(static_cast<double>(ms) * 1e6));
  }

  double drift_;
  std::mt19937_64 random_;
  LaneClock clock_;
  double anchor_ = 4, last_stop_ = 4;  // the first anchor happened at 4 µs
  TimePoint last_end_ = TimePoint::min(), noticed_ = TimePoint::min();
};

TEST(LaneClock, BackToBackWorkIsPlacedWhereItRan) {
  for (const double drift : {-50e-6, 0.0, 50e-6}) {
    Simulation simulation(drift, 1);
    LaneClock::Duration worst{0};
    // Eight copies of 500 µs wait in the queue, so when they were submitted says nothing. The host sleeps and
    // wakes up late, but not every time.
    for (int i = 0; i < 10'000; ++i)
      worst = std::max(worst, simulation.Run(std::max(0.0, 500.0 * (i - 8)) + 10, 500, i % 10 == 0 ? 3 : 45));
    EXPECT_LE(worst, microseconds(25)) << drift;
  }
}

TEST(LaneClock, CopiesWithoutAnEventBeforeThemBeginWhereTheOneBeforeEnded) {
  for (const double drift : {-50e-6, 0.0, 50e-6}) {
    Simulation simulation(drift, 4);
    LaneClock::Duration worst{0};
    double now = 100;
    for (int i = 0; i < 3'000; ++i) {
      // Four at a time, then a pause, after which the first has an event of its own, and the second was
      // submitted when that was done and not noticed yet: it did not begin before.
      worst = std::max(worst, simulation.Run(now, 100, i % 10 == 0 ? 3 : 45));
      worst = std::max(worst, simulation.Run(now + 120, 100, 40, true));
      for (const double later : {130, 140})
        worst = std::max(worst, simulation.Run(now + later, 100, 4, true));
      now += 1000;
    }
    EXPECT_LE(worst, microseconds(25)) << drift;
  }
}

TEST(LaneClock, IdleLanesStartAfreshHoweverLongTheyWere) {
  for (const double drift : {-80e-6, 80e-6}) {
    Simulation simulation(drift, 2);
    double now = 100;
    for (const double pause : {1e3, 1e6, 60e6, 3600e6}) {
      now += pause;
      // Between submitting and noticing lie some 60 µs around 20 µs of work.
      EXPECT_LE(simulation.Run(now, 20, 40), microseconds(40)) << pause;
    }
  }
}

TEST(LaneClock, WorkThatIsNoticedAtOnceSharpensWhatFollows) {
  Simulation simulation(0, 3);
  EXPECT_GT(simulation.Run(1e6, 100, 500), microseconds(50)) << "nobody can know";
  simulation.Run(1e6 + 1000, 100, 1);
  EXPECT_LE(simulation.Run(1e6 + 2000, 100, 500), microseconds(10)) << "noticed late, but the clock is known";
}

TEST(LaneClock, StartsAfreshWithWorkThatWasNotMeasured) {
  LaneClock clock(At(0), At(10));
  clock.Restart(At(1e6), At(1e6 + 15));
  const auto placed = clock.Place(microseconds(40), microseconds(30), At(1e6 + 5), At(1e6 + 60));
  EXPECT_GE(placed.begin, At(1e6 + 15)) << "not before what came before it was over";
  EXPECT_GE(placed.end, At(1e6 + 30) - microseconds(2)) << "30 us after an end that is known to 15";
  EXPECT_LE(placed.end, At(1e6 + 45) + microseconds(2));
}

TEST(LaneClock, NonsenseOfTheDeviceStaysWithinSubmittedAndNoticed) {
  LaneClock clock(At(0), At(10));
  const LaneClock::Duration odd[] = {milliseconds(0), milliseconds(-5), milliseconds(5),
                                     std::chrono::hours(2)};
  double now = 100;
  for (const auto length : odd)
    for (const auto stop : odd) {
      const auto placed = clock.Place(length, stop, At(now), At(now + 50));
      EXPECT_GE(placed.begin, At(now));
      EXPECT_LE(placed.begin, placed.end);
      EXPECT_LE(placed.end, At(now + 50));
      now += 100;
    }
}

}  // namespace
}  // namespace tilewire::engine
