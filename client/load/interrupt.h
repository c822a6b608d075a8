// Ctrl-C ends the measurement, not the program: what was measured so far is still told.
#pragma once

#include <csignal>

#include <atomic>
#include <stop_token>
#include <thread>

namespace tilewire::load {

/// Waits for SIGINT and SIGTERM on a thread of its own: the first requests a stop, the second ends the
/// process at once. Make it before any other thread, so that all of them inherit the blocked signals.
/// Thread-safe.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return stop_.get_token(); }
  /// 128 + the signal that came, else 0.
  int exit_code() const { return received_ == 0 ? 0 : 128 + received_; }

 private:
  sigset_t signals_;
  std::stop_source stop_;
  std::atomic<int> received_ = 0;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

}  // namespace tilewire::load
