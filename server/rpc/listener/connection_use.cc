#include "server/rpc/listener/connection_use.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewire::rpc {
namespace {

// Asked of those who wait for other calls of theirs to end.
constexpr int64_t kRetryMs = 250;
// Of a second's worth: who comes just when he was told to finds enough.
constexpr double kRounding = 1e-9;

bool IsFull(int there, int most) {
  return most > 0 && there >= most;
}

Status TooMany(std::string_view what, int there, int most, const char* flag) {
  const std::string allowed = std::to_string(most) + " (" + flag + ")";
  return Status({.code = Code::kResourceExhausted,
                 .reason = "BUSY",
                 .message = "the connection has " + std::to_string(there) + " " + std::string(what) +
                            "; allowed: " + allowed,
                 .field = std::string(what) + " of the connection",
                 .value = std::to_string(there),
                 .allowed = allowed,
                 .retry_after_ms = kRetryMs});
}

bool Lacks(double lacking, double per_second) {
  return per_second > 0 && lacking > kRounding * std::max(1.0, per_second);
}

Status TooFast(std::string_view what, double lacking, double per_second, const char* flag) {
  const auto ms = static_cast<int64_t>(std::ceil(lacking / per_second * 1000));
  const std::string allowed = std::to_string(std::llround(per_second)) + " (" + flag + ")";
  return Status({.code = Code::kResourceExhausted,
                 .reason = "BUSY",
                 .message = "the connection had more " + std::string(what) + " a second than " + allowed +
                            "; this call may come in " + std::to_string(ms) + " ms",
                 .field = std::string(what) + " a second of the connection",
                 .value = "more",
                 .allowed = allowed,
                 .retry_after_ms = ms});
}

}  // namespace

void ConnectionUse::Bucket::Refill(double per_second, TimePoint now) {
  const double seconds = std::max(0.0, std::chrono::duration<double>(now - since).count());
  taken = std::max(0.0, taken - seconds * per_second);
  since = std::max(since, now);
}

Status ConnectionUse::Enter(const UseLimits& limits, bool stream, TimePoint now) {
  const MutexLock lock(mutex_);
  const int there = calls_.load(std::memory_order_acquire),
            streams = streams_.load(std::memory_order_acquire);
  if (IsFull(there, limits.calls)) return TooMany("calls", there, limits.calls, "--max-calls-per-connection");
  if (stream && IsFull(streams, limits.streams))
    return TooMany("streams", streams, limits.streams, "--max-streams-per-connection");
  call_rate_.Refill(limits.calls_per_second, now);
  byte_rate_.Refill(limits.bytes_per_second, now);
  const double calls = call_rate_.taken + 1 - std::max(1.0, limits.calls_per_second);
  if (Lacks(calls, limits.calls_per_second))
    return TooFast("calls", calls, limits.calls_per_second, "--calls-per-second-per-connection");
  const double bytes = byte_rate_.taken - limits.bytes_per_second;
  if (Lacks(bytes, limits.bytes_per_second))
    return TooFast("bytes", bytes, limits.bytes_per_second, "--bytes-per-second-per-connection");
  calls_.fetch_add(1, std::memory_order_relaxed);
  if (stream) streams_.fetch_add(1, std::memory_order_relaxed);
  if (limits.calls_per_second > 0) call_rate_.taken += 1;
  return {};
}

void ConnectionUse::Leave(bool stream) {
  calls_.fetch_sub(1, std::memory_order_release);
  if (stream) streams_.fetch_sub(1, std::memory_order_release);
}

void ConnectionUse::Moved(const UseLimits& limits, size_t bytes, TimePoint now) {
  if (limits.bytes_per_second == 0) return;
  const MutexLock lock(mutex_);
  byte_rate_.Refill(limits.bytes_per_second, now);
  byte_rate_.taken += static_cast<double>(bytes);
}

}  // namespace tilewire::rpc
