// When a failed attempt is worth another one, and how long to wait for it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>

#include "kernels/array/status.h"

namespace tilewire::client {

/// Attempts of a call in all, unless its options say otherwise.
inline constexpr int kDefaultAttempts = 5;
/// The wait doubles from the one to the other, with this jitter either way.
inline constexpr std::chrono::milliseconds kFirstRetryWait{50}, kLongestRetryWait{2000};
inline constexpr int kRetryJitterPercent = 20;

/// How far array bytes of an attempt went: nowhere, operands' to gRPC, or results' to the caller.
enum class Moved : uint8_t { kNothing, kOperands, kResults };

/// Decides over the attempts of one call. Worth another attempt: RESOURCE_EXHAUSTED `BUSY`, which a server
/// may also say once the first operand bytes are there, and UNAVAILABLE where no array byte went either way.
/// A pushback of the server (Status::Detail::retry_after_ms) replaces the wait. Not thread-safe; one object a
/// call.
class Retry {
 public:
  using Clock = std::chrono::steady_clock;
  using Wait = std::function<void(std::chrono::milliseconds, const std::stop_token&)>;

  /// At most `max_attempts` attempts in all; none that could only start after `deadline`.
  Retry(int max_attempts, std::optional<Clock::time_point> deadline)
      : left_(max_attempts - 1), deadline_(deadline) {}

  /// How long to wait before the next attempt, or nothing where there is none.
  std::optional<std::chrono::milliseconds> Next(const Status& failed, Moved moved);
  /// Waits, or has `wait` do it where that is set, until the time is over or `stop` is requested.
  static void Sleep(std::chrono::milliseconds time, const std::stop_token& stop, const Wait& wait);

 private:
  int left_;
  std::optional<Clock::time_point> deadline_;
  std::chrono::milliseconds backoff_ = kFirstRetryWait;
};

}  // namespace tilewire::client
