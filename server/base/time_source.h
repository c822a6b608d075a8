// The time that decisions go by: limits, bounds, times to live. What only measures reads Clock itself.
#pragma once

#include <atomic>
#include <functional>
#include <map>

#include "server/base/mutex.h"
#include "server/base/timing.h"

namespace tilewire {

/// Thread-safe. Outlives whatever asks it.
class TimeSource {
 public:
  virtual ~TimeSource() = default;
  virtual TimePoint Now() const = 0;
  /// Until when, by Clock, a thread may sleep that waits for `when`: time that jumps wakes it before.
  virtual TimePoint SleepUntil(TimePoint when) const = 0;
  /// `on_jump` is called after every jump, by whoever makes time jump.
  virtual void Watch(const void* watcher, std::function<void()> on_jump) = 0;
  /// Waits for a call that runs; none comes afterwards.
  virtual void Unwatch(const void* watcher) = 0;
};

/// Clock's time, which never jumps.
TimeSource* SteadyTime();

/// Time that stands still until it is told to go on, for tests: a limit is reached when they say so, however
/// slow the machine is.
class ManualTime final : public TimeSource {
 public:
  TimePoint Now() const override { return now_.load(); }
  TimePoint SleepUntil(TimePoint) const override { return TimePoint::max(); }
  void Watch(const void* watcher, std::function<void()> on_jump) override;
  void Unwatch(const void* watcher) override;
  void Advance(Clock::duration by);

 private:
  std::atomic<TimePoint> now_{Clock::now()};
  Mutex mutex_;  ///< held while the watchers are told
  std::map<const void*, std::function<void()>> watchers_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire
