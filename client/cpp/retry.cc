#include "client/cpp/retry.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>

namespace tilewire::client {

std::optional<std::chrono::milliseconds> Retry::Next(const Status& failed, bool anything_moved) {
  const bool busy = failed.code() == Code::kResourceExhausted && failed.reason() == "BUSY";
  if (anything_moved || left_ <= 0) return std::nullopt;
  if (!busy && failed.code() != Code::kUnavailable) return std::nullopt;
  --left_;

  std::chrono::milliseconds wait(failed.detail()->retry_after_ms);
  if (wait.count() < 0) {
    static thread_local std::minstd_rand random{std::random_device{}()};
    const int percent = std::uniform_int_distribution<int>(80, 120)(random);
    wait = backoff_ * percent / 100;
    backoff_ = std::min(backoff_ * 2, std::chrono::milliseconds(2000));
  }
  if (deadline_ && *deadline_ - Clock::now() <= wait) return std::nullopt;
  return wait;
}

void Retry::Sleep(std::chrono::milliseconds time, const std::stop_token& stop, const Wait& wait) {
  if (wait) return wait(time, stop);
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait_for(lock, stop, time, [&] { return stop.stop_requested(); });
}

}  // namespace tilewire::client
