#include "server/engine/admission/rate_limits.h"

#include <algorithm>
#include <cmath>

#include "server/base/pushback.h"

namespace tilewire::engine {
namespace {

/// Texts without a fraction, as the flags have them.
std::string Whole(double value) {
  return std::to_string(std::llround(value));
}

/// How long that takes; not for ever.
Clock::duration TimeToBring(double amount, double per_second) {
  return std::chrono::nanoseconds(std::llround(std::min(amount / per_second, 1e9) * 1e9));
}

Status TooFast(size_t which, double wanted, double rate, Clock::duration wait, bool own) {
  const bool calls = which == 0;
  const std::string what = calls ? "calls" : "bytes";
  const std::string said = calls ? SaidBy(own, "calls_per_second", "--calls-per-second-per-identity")
                                 : SaidBy(own, "bytes_per_second", "--bytes-per-second-per-identity");
  const int64_t ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  return Status({.code = Code::kResourceExhausted,
                 .reason = "BUSY",
                 .message = "you ask for more than " + Whole(rate) + " " + what + " a second" + said +
                            "; this one may come in " + std::to_string(ms) + " ms",
                 .field = what + " a second",
                 .value = Whole(wanted),
                 .allowed = Whole(rate) + said,
                 .retry_after_ms = ms});
}

}  // namespace

std::string SaidBy(bool own, const char* rule_key, const char* flag) {
  return own ? std::string(" (") + rule_key + " in --policy)" : std::string(" (") + flag + ")";
}

RateLimits::Pair RateLimits::Most(const Pair& per_second) {
  return {std::max(1.0, per_second[0]), per_second[1]};
}

RateLimits::Pair RateLimits::LevelsAt(const Buckets& buckets, const Pair& most, TimePoint now) {
  const double seconds = std::max(0.0, std::chrono::duration<double>(now - buckets.filled).count());
  Pair levels = most;  // of what had no bound nothing was taken
  for (size_t i = 0; i < levels.size(); ++i)
    if (buckets.per_second[i] > 0)
      levels[i] = std::min(most[i], buckets.levels[i] + seconds * buckets.per_second[i]);
  return levels;
}

Status RateLimits::Take(const std::string& owner, int64_t bytes, TimePoint now, const Rates& own) {
  const bool own_calls = own.calls_per_second > 0, own_bytes = own.bytes_per_second > 0;
  const Pair per_second{own_calls ? own.calls_per_second : rates_.calls_per_second,
                        own_bytes ? own.bytes_per_second : rates_.bytes_per_second};
  if (per_second == Pair{0.0, 0.0}) return {};
  constexpr double kRounding = 1e-9;  // of a bucket: who comes just when he was told to finds enough
  const Pair wanted{1.0, static_cast<double>(bytes)}, most = Most(per_second);
  const MutexLock lock(mutex_);
  const auto [found, is_new] = owners_.try_emplace(owner, Buckets{most, per_second, now});
  Buckets& buckets = found->second;
  const Pair levels = LevelsAt(buckets, most, now);
  // From now on time brings what the new rate says, also to who is refused.
  if (buckets.per_second != per_second) buckets = {levels, per_second, now, buckets.told};
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (per_second[i] == 0) continue;
    const double lacking = std::min(wanted[i], most[i]) - levels[i];
    if (lacking <= most[i] * kRounding) continue;
    const Clock::duration alone = TimeToBring(lacking, per_second[i]),
                          worth = TimeToBring(wanted[i], per_second[i]);
    const uint32_t places = PlacesInTurn(worth, alone);
    const Clock::duration after = places == 0 ? Clock::duration() : buckets.told[i]++ % places * worth;
    return TooFast(i, wanted[i], per_second[i], alone + after, i == 0 ? own_calls : own_bytes);
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    buckets.levels[i] = levels[i] - wanted[i];
    if (buckets.told[i] > 0) --buckets.told[i];
  }
  buckets.filled = now;
  if (is_new && owners_.size() >= forget_at_) ForgetFull(now);
  return {};
}

void RateLimits::ForgetFull(TimePoint now) {
  std::erase_if(owners_, [&](const auto& owner) {
    const Buckets& buckets = owner.second;
    const Pair most = Most(buckets.per_second), levels = LevelsAt(buckets, most, now);
    return levels[0] >= most[0] && levels[1] >= most[1];
  });
  forget_at_ = std::max<size_t>(256, 2 * owners_.size());
}

size_t RateLimits::known() const {
  const MutexLock lock(mutex_);
  return owners_.size();
}

}  // namespace tilewire::engine
