// The shared state of one window: who may start which call, and what is kept of it. Internal to the
// generator.
#pragma once

#include <atomic>
#include <optional>

#include "client/load/generator.h"
#include "server/base/mutex.h"

namespace tilewire::load {

/// A call to make.
struct Start {
  Request request;
  LoadClock::time_point due, begin;  ///< `begin`: when it really starts
  bool counted = false;              ///< open loops and `requests`: decided at the start
};

/// Thread-safe. Times are seconds from its making, which is when the warm-up begins.
class Window {
 public:
  explicit Window(const LoadOptions& options);

  /// The next call of a caller (with that caller's own random numbers), when it is time for it; none when the
  /// caller is done. Blocks until a call is due.
  std::optional<Start> Next(uint32_t caller, Random* random);
  /// A call and its check are over. Order does not matter: what counts is when the answer says that it ended.
  void Ended(const Start& start, const Answer& answer);
  /// Waits like a call would, but wakes for Stop().
  void Pause(double seconds);

  /// No further starts.
  void Stop();
  /// The window closes now; open loops still start what was due before.
  void Close();
  /// Due calls that have not started never will: they become errors.
  void Abandon();

  double Now() const;
  double begin() const { return begin_; }
  /// Whether every start of `requests` was given out.
  bool exhausted() const;
  /// Seconds since the first UNAVAILABLE after the last other end of a call; 0 where there is none.
  double lost_seconds() const;
  /// Whether a call said that the server has lost what all of them depend on.
  bool lost() const;
  /// The counted calls so far.
  void Snapshot(uint64_t* calls, uint64_t* errors) const;
  /// The calls a second and median latency since the last call of this.
  std::pair<double, double> Slice();
  /// Everything so far, a copy: threads that were abandoned may go on writing.
  LoadResult Take() const;

 private:
  /// Every caller takes the lock twice a call, for less than a microsecond. Who meets another one there tries
  /// again for a while: to sleep and be woken takes tens of microseconds, which would be told as the
  /// server's.
  void Acquire() const TILEWIRE_ACQUIRE(mutex_);
  LoadClock::time_point At(double seconds) const;
  double Seconds(LoadClock::time_point at) const;
  std::optional<Start> NextClosed(uint32_t caller, Random* random);
  std::optional<Start> NextOpen(uint32_t caller);
  Request Draw(Random* random, uint32_t caller) TILEWIRE_REQUIRES(mutex_);
  void Keep(const Start& start, const Answer& answer, double latency_us, double service_us, double end)
      TILEWIRE_REQUIRES(mutex_);

  const LoadOptions options_;
  const LoadClock::time_point origin_;
  const double begin_;
  double total_weight_ = 0;

  mutable Mutex mutex_;
  CondVar wake_;
  bool stopped_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::optional<double> end_ TILEWIRE_GUARDED_BY(mutex_);
  Schedule schedule_ TILEWIRE_GUARDED_BY(mutex_);
  Random open_random_ TILEWIRE_GUARDED_BY(mutex_);
  double next_due_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t counted_starts_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  double last_end_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< of a counted call
  /// The last end of a good call that counts, in a closed loop by time. Behind the window's end only where
  /// there was none until then: the window then lasts until the first, since without any it would say
  /// nothing.
  std::optional<double> good_until_ TILEWIRE_GUARDED_BY(mutex_);
  std::optional<double> unavailable_since_ TILEWIRE_GUARDED_BY(mutex_);
  uint64_t unavailable_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< calls since then
  bool lost_ TILEWIRE_GUARDED_BY(mutex_) = false;
  LoadResult result_ TILEWIRE_GUARDED_BY(mutex_);
  std::vector<uint64_t> traced_ TILEWIRE_GUARDED_BY(mutex_);  ///< calls seen, by operation
  Histogram slice_ TILEWIRE_GUARDED_BY(mutex_);
  double slice_begin_ TILEWIRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace tilewire::load
