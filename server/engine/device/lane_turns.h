// Who serves what was submitted to a lane: its own thread, or one that lends itself for a moment.
#pragma once

#include <cstdint>
#include <deque>
#include <thread>
#include <utility>

#include "server/base/mutex.h"
#include "server/base/timing.h"

namespace tilewire::engine {

/// A FIFO whose oldest submission is served by one thread at a time, so that the order holds. Waking a
/// sleeping thread costs the waker 5 to 20 µs where cores sleep too: the lane's own thread is woken only
/// where nobody else is there to serve, or has said that it will be. Thread-safe.
template <typename Submission>
class LaneTurns {
 public:
  /// Adds what `make(bool behind)` returns, which runs under the lock: the queue has the order in which it
  /// was made. `behind`: others wait in the queue, so that the one before this has not been served.
  template <typename Make>
  void Push(const Make& make) {
    MutexLock lock(mutex_);
    queue_.push_back(make(!queue_.empty()));
    WakeLocked();
  }

  /// The lane's own thread: calls `serve(Submission&)` for one after the other, without the lock, until
  /// Stop() was called and nothing is left. `serve` drops what the submission holds.
  template <typename Serve>
  void Run(const Serve& serve) {
    MutexLock lock(mutex_);
    while (true) {
      while (serving_ || (!stop_ && queue_.empty())) {
        sleeps_ = true;  // anew: somebody may have been quicker than who was woken
        wake_.Wait(mutex_);
      }
      sleeps_ = false;
      if (queue_.empty()) return;
      ServeFirst(serve);
    }
  }

  /// Lends the calling thread: serves while there is something, nobody else is at it and `until` has not
  /// passed. `ready(Submission&, until)` waits, without the lock, for the oldest one, and says whether it can
  /// be served without waiting; if not, that ends it.
  template <typename Ready, typename Serve>
  void Help(TimePoint until, const Ready& ready, const Serve& serve) {
    MutexLock lock(mutex_);
    while (!serving_ && !queue_.empty()) {
      // Nobody but who serves takes from the front, and a deque's elements stay where they are.
      serving_ = true;
      Submission& first = queue_.front();
      mutex_.Unlock();
      const bool can = ready(first, until);
      mutex_.Lock();
      if (!can) {
        serving_ = false;
        break;
      }
      ServeFirst(serve);
    }
    WakeLocked();
  }

  /// From now until Withdraw() the lane's own thread is not woken for what is submitted: see Lane.
  void Announce() {
    MutexLock lock(mutex_);
    ++announced_;
  }
  void Withdraw() {
    MutexLock lock(mutex_);
    --announced_;
    WakeLocked();
  }

  /// Ends Run() when everything is served.
  void Stop() {
    MutexLock lock(mutex_);
    stop_ = true;
    wake_.NotifyOne();
  }

  /// How often the lane's own thread was woken.
  uint64_t wakes() const {
    MutexLock lock(mutex_);
    return wakes_;
  }

 private:
  void WakeLocked() TILEWIRE_REQUIRES(mutex_) {
    // Who serves looks at the queue again before it leaves, and so does who was announced.
    if (serving_ || announced_ > 0 || queue_.empty() || !sleeps_) return;
    sleeps_ = false;  // once is enough
    ++wakes_;
    wake_.NotifyOne();
  }

  /// The lock is released meanwhile.
  template <typename Serve>
  void ServeFirst(const Serve& serve) TILEWIRE_REQUIRES(mutex_) {
    serving_ = true;
    {
      Submission submission = std::move(queue_.front());
      queue_.pop_front();
      mutex_.Unlock();
      serve(submission);
    }
    mutex_.Lock();
    serving_ = false;
  }

  mutable Mutex mutex_;
  CondVar wake_;
  std::deque<Submission> queue_ TILEWIRE_GUARDED_BY(mutex_);
  bool serving_ TILEWIRE_GUARDED_BY(mutex_) = false;  ///< by the lane's thread or a helper
  bool sleeps_ TILEWIRE_GUARDED_BY(mutex_) = false;   ///< the lane's thread, and nobody has woken it
  bool stop_ TILEWIRE_GUARDED_BY(mutex_) = false;
  int announced_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t wakes_ TILEWIRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace tilewire::engine
