#include "client/cpp/retry.h"

#include <algorithm>
#include <random>

#include "server/base/mutex.h"

namespace tilewire::client {

std::optional<std::chrono::milliseconds> Retry::Next(const Status& failed, Moved moved) {
  const bool busy = failed.code() == Code::kResourceExhausted && failed.reason() == "BUSY";
  if (moved > (busy ? Moved::kOperands : Moved::kNothing) || left_ <= 0) return std::nullopt;
  if (!busy && failed.code() != Code::kUnavailable) return std::nullopt;
  --left_;

  std::chrono::milliseconds wait(failed.detail()->retry_after_ms);
  if (wait.count() < 0) {
    static thread_local std::minstd_rand random{std::random_device{}()};
    const int percent =
        std::uniform_int_distribution<int>(100 - kRetryJitterPercent, 100 + kRetryJitterPercent)(random);
    wait = backoff_ * percent / 100;
    backoff_ = std::min(backoff_ * 2, kLongestRetryWait);
  }
  if (deadline_ && *deadline_ - Clock::now() <= wait) return std::nullopt;
  return wait;
}

void Retry::Sleep(std::chrono::milliseconds time, const std::stop_token& stop, const Wait& wait) {
  if (wait) return wait(time, stop);
  const auto until = Clock::now() + time;
  Mutex mutex;
  CondVar wake;
  const std::stop_callback on_stop(stop, [&] {
    const MutexLock lock(mutex);  // not between the sleeper's look and its sleep
    wake.NotifyAll();
  });
  const MutexLock lock(mutex);
  while (!stop.stop_requested())
    if (!wake.WaitUntil(mutex, until)) return;
}

}  // namespace tilewire::client
