// std::mutex and std::condition_variable under names that Clang's thread-safety analysis knows. Nothing else
// in server/ and client/ includes those (tests/layout/includes.py); clients may include this header, which
// needs nothing of ours.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "server/base/thread_annotations.h"

namespace tilewire {

/// Guards what is declared TILEWIRE_GUARDED_BY it. Not recursive.
class TILEWIRE_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() TILEWIRE_ACQUIRE() { mutex_.lock(); }
  void Unlock() TILEWIRE_RELEASE() { mutex_.unlock(); }
  /// Whether it was free.
  bool TryLock() TILEWIRE_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

/// Holds a mutex as long as it lives.
class [[nodiscard]] TILEWIRE_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) TILEWIRE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  /// One that the caller holds already.
  MutexLock(Mutex& mutex, std::adopt_lock_t) TILEWIRE_REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() TILEWIRE_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// The same, but it may let go in between.
class [[nodiscard]] TILEWIRE_SCOPED_CAPABILITY RelockableMutexLock {
 public:
  explicit RelockableMutexLock(Mutex& mutex) TILEWIRE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~RelockableMutexLock() TILEWIRE_RELEASE() {
    if (held_) mutex_.Unlock();
  }
  RelockableMutexLock(const RelockableMutexLock&) = delete;
  RelockableMutexLock& operator=(const RelockableMutexLock&) = delete;

  void Unlock() TILEWIRE_RELEASE() {
    held_ = false;
    mutex_.Unlock();
  }
  void Lock() TILEWIRE_ACQUIRE() {
    mutex_.Lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

/// What holders of a mutex wait for. No predicates: the analysis does not know in a lambda that the lock is
/// held, so waits are loops over a condition, which a spurious wake-up needs anyway.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }
  /// Lets go of the mutex, sleeps until it is notified, perhaps for no reason, and holds it again.
  void Wait(Mutex& mutex) TILEWIRE_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  /// The same, until `until` at the latest: false when that came.
  template <typename Clock, typename Duration>
  bool WaitUntil(Mutex& mutex, const std::chrono::time_point<Clock, Duration>& until)
      TILEWIRE_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const std::cv_status status = condition_.wait_until(lock, until);
    lock.release();
    return status == std::cv_status::no_timeout;
  }

 private:
  std::condition_variable condition_;
};

}  // namespace tilewire
