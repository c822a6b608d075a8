// Calls functions at points in time, on one thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <thread>

#include "server/base/mutex.h"
#include "server/base/time_source.h"

namespace tilewire {

/// Thread-safe. Functions must be short; they run without a lock held, one at a time, never inside At().
class Timer {
 public:
  using Id = uint64_t;  ///< 0 is no timer

  explicit Timer(TimeSource* time = SteadyTime());
  /// Drops what has not run yet and waits for what runs.
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// The time that it goes by.
  TimePoint Now() const { return time_->Now(); }
  Id At(TimePoint when, std::function<void()> function);
  /// Soon, in order: for work that must leave the calling thread.
  Id Post(std::function<void()> function) { return At(TimePoint::min(), std::move(function)); }
  /// The function will not start any more, but may be running. No-op for 0 and for what has run.
  void Cancel(Id id);

 private:
  void Run();

  TimeSource* const time_;
  Mutex mutex_;
  CondVar wake_;
  std::map<std::pair<TimePoint, Id>, std::function<void()>> due_ TILEWIRE_GUARDED_BY(mutex_);
  std::map<Id, TimePoint> times_ TILEWIRE_GUARDED_BY(mutex_);
  Id last_id_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  /// When the thread wakes by itself, perhaps for a timer that is gone; only earlier ones need to wake it.
  TimePoint wakes_at_ TILEWIRE_GUARDED_BY(mutex_) = TimePoint::min();
  bool stop_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tilewire
