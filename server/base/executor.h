// Where work goes that the calling thread must not do itself.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "server/base/mutex.h"

namespace tilewire {

/// Runs functions on a thread of its own, never inside Post(). Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void Post(std::function<void()> function) = 0;
};

/// One thread that runs functions one after the other, in order. The destructor runs what is left.
class SerialThread final : public Executor {
 public:
  /// `name`: of the thread, at most 15 characters. Throws std::system_error where it cannot be made, which
  /// Post, on threads that cannot fail, never does.
  explicit SerialThread(const char* name);
  ~SerialThread() override;
  SerialThread(const SerialThread&) = delete;
  SerialThread& operator=(const SerialThread&) = delete;

  void Post(std::function<void()> function) override;

 private:
  void Run();

  Mutex mutex_;
  CondVar wake_;
  std::deque<std::function<void()>> queue_ TILEWIRE_GUARDED_BY(mutex_);
  bool stop_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tilewire
