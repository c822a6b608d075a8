#include "server/rpc/listener/connection_use.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/base/pushback.h"

namespace tilewire::rpc {
namespace {

// Asked of those who wait for other calls of theirs to end.
constexpr int64_t kRetryMs = 250;
constexpr int64_t kSecond = 1'000'000'000;
// More than a century from now: a debt that nobody ever pays. With as much as is taken at once it stays in 64
// bits.
constexpr int64_t kNever = 4'000'000'000'000'000'000;
constexpr double kMostAtOnce = 1e18;

int64_t Nanoseconds(TimePoint now) {
  return std::chrono::nanoseconds(now.time_since_epoch()).count();
}

/// How long `per_second` takes to bring `count`. Rounded down: what holds so many takes them all.
int64_t WorthOf(double count, double per_second) {
  return static_cast<int64_t>(std::min(count * kSecond / per_second, kMostAtOnce));
}

/// Counts one more. Returns how many there are where these are `most`, and then counts nothing; 0: no bound.
std::optional<int> Add(std::atomic<int>* count, int most) {
  if (most == 0) {
    count->fetch_add(1, std::memory_order_acquire);
    return std::nullopt;
  }
  int there = count->load(std::memory_order_relaxed);
  while (there < most)
    if (count->compare_exchange_weak(there, there + 1, std::memory_order_acquire)) return std::nullopt;
  return there;
}

Status TooMany(std::string_view what, int there, int most, const char* flag) {
  const std::string allowed = std::to_string(most) + " (" + flag + ")";
  return Status({.code = Code::kResourceExhausted,
                 .reason = "BUSY",
                 .message = std::string(what) + " of the connection: " + std::to_string(there) +
                            "; allowed: " + allowed,
                 .field = std::string(what) + " of the connection",
                 .value = std::to_string(there),
                 .allowed = allowed,
                 .retry_after_ms = kRetryMs});
}

Status TooFast(std::string_view what, Clock::duration wait, double per_second, const char* flag) {
  const int64_t ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
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

void ConnectionUse::Bucket::Take(double count, double per_second, TimePoint now) {
  const int64_t worth = WorthOf(count, per_second), at = Nanoseconds(now);
  int64_t full = full_at_.load(std::memory_order_relaxed);
  while (!full_at_.compare_exchange_weak(full, std::min(std::max(full, at) + worth, kNever),
                                         std::memory_order_relaxed)) {
  }
}

Clock::duration ConnectionUse::Bucket::TakeOrWait(double count, double per_second, TimePoint now,
                                                  std::atomic<uint32_t>* told) {
  const int64_t worth = WorthOf(count, per_second), at = Nanoseconds(now);
  int64_t full = full_at_.load(std::memory_order_relaxed);
  for (;;) {
    const int64_t then = std::max(full, at) + worth, wait = then - at - std::max(kSecond, worth);
    if (wait > 0) {
      const std::chrono::nanoseconds alone(wait), whole(worth);
      const uint32_t places = PlacesInTurn(whole, alone);
      return places == 0 ? alone : alone + told->fetch_add(1, std::memory_order_relaxed) % places * whole;
    }
    if (full_at_.compare_exchange_weak(full, then, std::memory_order_relaxed)) break;
  }
  if (uint32_t others = told->load(std::memory_order_relaxed); others > 0)
    told->compare_exchange_strong(others, others - 1, std::memory_order_relaxed);
  return {};
}

Clock::duration ConnectionUse::Bucket::Debt(TimePoint now) const {
  const int64_t taken = full_at_.load(std::memory_order_relaxed) - Nanoseconds(now);
  return std::chrono::nanoseconds(std::max<int64_t>(0, taken - kSecond));
}

Status ConnectionUse::Enter(const UseLimits& limits, bool stream, TimePoint now) {
  // Streams first: what one holds until it is refused for its call is in the way of no other call.
  if (stream)
    if (const auto streams = Add(&streams_, limits.streams))
      return TooMany("streams", *streams, limits.streams, "--max-streams-per-connection");
  if (const auto calls = Add(&calls_, limits.calls)) {
    if (stream) streams_.fetch_sub(1, std::memory_order_release);
    return TooMany("calls", *calls, limits.calls, "--max-calls-per-connection");
  }
  if (limits.bytes_per_second > 0)
    if (const Clock::duration wait = byte_rate_.Debt(now); wait > Clock::duration::zero()) {
      Leave(stream);
      return TooFast("bytes", wait, limits.bytes_per_second, "--bytes-per-second-per-connection");
    }
  if (limits.calls_per_second > 0)
    if (const Clock::duration wait = call_rate_.TakeOrWait(1, limits.calls_per_second, now, &told_);
        wait > Clock::duration::zero()) {
      Leave(stream);
      return TooFast("calls", wait, limits.calls_per_second, "--calls-per-second-per-connection");
    }
  return {};
}

void ConnectionUse::Leave(bool stream) {
  calls_.fetch_sub(1, std::memory_order_release);
  if (stream) streams_.fetch_sub(1, std::memory_order_release);
}

void ConnectionUse::Moved(const UseLimits& limits, size_t bytes, TimePoint now) {
  if (limits.bytes_per_second > 0) byte_rate_.Take(static_cast<double>(bytes), limits.bytes_per_second, now);
}

}  // namespace tilewire::rpc
