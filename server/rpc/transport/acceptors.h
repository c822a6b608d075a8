// Loops that ask gRPC for the next call. gRPC 1.51 aborts the process where one asks behind the shutdown of
// its queue, and a loop that has just been given a call will ask again: so the end of a server waits for
// them.
#pragma once

#include "server/base/mutex.h"

namespace tilewire::rpc {

/// Counts the loops that may still ask. Thread-safe.
class Acceptors {
 public:
  Acceptors() = default;
  Acceptors(const Acceptors&) = delete;

  /// One loop, from its beginning to its end: the first thing in its coroutine.
  class One {
   public:
    explicit One(Acceptors* all) : all_(all) {
      const MutexLock lock(all_->mutex_);
      ++all_->running_;
    }
    ~One() {
      const MutexLock lock(all_->mutex_);
      if (--all_->running_ == 0) all_->ended_.NotifyAll();
    }
    One(const One&) = delete;

   private:
    Acceptors* const all_;
  };

  /// Returns when none is left. After the server's shutdown, which refuses whatever they ask for; needs
  /// threads at their queues.
  void WaitEnded() {
    const MutexLock lock(mutex_);
    while (running_ > 0) ended_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar ended_;
  int running_ TILEWIRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace tilewire::rpc
