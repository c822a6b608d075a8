// Calls of an event loop: run by threads, told of by a file descriptor.
#pragma once

#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "client/python/core/call.h"
#include "server/base/mutex.h"

namespace tilewire::python {

/// Runs calls on threads of its own, as many at a time as it may have; none of them ever takes the GIL.
/// Thread-safe.
class Pool {
 public:
  /// Throws StatusError where the process has no descriptors left.
  explicit Pool(size_t max_threads);
  /// Cancels what runs, forgets what waits, and waits for the threads.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Readable when calls have ended.
  int descriptor() const { return descriptor_; }
  /// Runs `call`, which stays until Finished() named it or the pool is gone.
  void Submit(Call* call, uint64_t number);
  /// The numbers of those that ended since the last time.
  std::vector<uint64_t> Finished();

 private:
  struct Task {
    Call* call;
    uint64_t number;
  };
  void Work();

  const size_t max_threads_;
  const int descriptor_;
  Mutex mutex_;
  CondVar wake_;
  bool over_ TILEWIRE_GUARDED_BY(mutex_) = false;
  size_t idle_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  std::deque<Task> waiting_ TILEWIRE_GUARDED_BY(mutex_);
  std::vector<Call*> running_ TILEWIRE_GUARDED_BY(mutex_);
  std::vector<uint64_t> finished_ TILEWIRE_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire::python
