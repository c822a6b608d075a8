// SIGINT and SIGTERM end the running call instead of the process.
#pragma once

#include <csignal>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <thread>

namespace tilewire::cli {

/// Waits for signals on a thread of its own. The first one requests a stop; a second one, or two seconds
/// without the program ending, ends the process: a call cannot always end at once (see
/// ConnectOptions::dead_peer_timeout). Make it before any other thread, so that all of them inherit the
/// blocked signals. Thread-safe.
class SignalWatcher {
 public:
  SignalWatcher();
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

  std::stop_token token() const { return stop_.get_token(); }
  /// The signal that came, or 0.
  int received() const { return received_; }
  /// Ends the process with exit code 1 and DEADLINE_EXCEEDED two seconds after `timeout` from now.
  void GiveUpAfter(std::chrono::milliseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;
  void Watch();

  sigset_t signals_;
  std::stop_source stop_;
  std::atomic<int> received_ = 0;
  std::atomic<bool> done_ = false;
  std::atomic<int64_t> timeout_ms_ = 0;  ///< written before give_up_at_
  std::atomic<Clock::rep> give_up_at_;   ///< by timeout
  std::thread thread_;
};

}  // namespace tilewire::cli
