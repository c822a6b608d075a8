// One thread for what takes too long for threads that others wait for.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tilewire::engine {

/// Runs functions one after the other, in order. The thread starts with the first. Thread-safe. The
/// destructor runs what is left.
class SerialThread {
 public:
  /// `name`: of the thread, at most 15 characters.
  explicit SerialThread(const char* name) : name_(name) {}
  ~SerialThread();
  SerialThread(const SerialThread&) = delete;
  SerialThread& operator=(const SerialThread&) = delete;

  void Post(std::function<void()> function);

 private:
  void Run();

  const char* const name_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tilewire::engine
