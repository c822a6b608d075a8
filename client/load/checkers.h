// Threads that compare results with the right ones, so that callers need not.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "server/base/mutex.h"

namespace tilewire::load {

/// How many a load has: a quarter of this machine's cores, 1 to 4.
uint32_t CheckerCount();

/// Runs checks in the order in which they come. Thread-safe.
class Checkers {
 public:
  explicit Checkers(uint32_t threads);
  /// Finish().
  ~Checkers();
  Checkers(const Checkers&) = delete;
  Checkers& operator=(const Checkers&) = delete;

  void Submit(std::function<void()> check);
  /// Waits until all that was submitted is done, and ends the threads. What comes later is dropped: nobody
  /// waits for it any more. Once.
  void Finish();

 private:
  void Work();

  Mutex mutex_;
  CondVar wake_;
  std::deque<std::function<void()>> waiting_ TILEWIRE_GUARDED_BY(mutex_);
  bool finished_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace tilewire::load
