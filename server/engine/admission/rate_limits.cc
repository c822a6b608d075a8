#include "server/engine/admission/rate_limits.h"

#include <algorithm>
#include <cmath>

namespace tilewire::engine {
namespace {

/// Texts without a fraction, as the flags have them.
std::string Whole(double value) {
  return std::to_string(std::llround(value));
}

Status TooFast(size_t which, double wanted, double rate, double wait_seconds) {
  const bool calls = which == 0;
  const std::string what = calls ? "calls" : "bytes";
  const std::string flag = calls ? "--calls-per-second-per-identity" : "--bytes-per-second-per-identity";
  const auto ms = static_cast<int64_t>(std::ceil(wait_seconds * 1000));
  return Status({.code = Code::kResourceExhausted,
                 .reason = "BUSY",
                 .message = "you ask for more than " + Whole(rate) + " " + what + " a second (" + flag +
                            "); this one may come in " + std::to_string(ms) + " ms",
                 .field = what + " a second",
                 .value = Whole(wanted),
                 .allowed = Whole(rate) + " (" + flag + ")",
                 .retry_after_ms = ms});
}

}  // namespace

RateLimits::RateLimits(const Rates& rates)
    : per_second_{rates.calls_per_second, rates.bytes_per_second},
      most_{std::max(1.0, rates.calls_per_second), rates.bytes_per_second} {}

std::array<double, 2> RateLimits::LevelsAt(const Buckets& buckets, TimePoint now) const {
  const double seconds = std::max(0.0, std::chrono::duration<double>(now - buckets.filled).count());
  std::array<double, 2> levels{};
  for (size_t i = 0; i < levels.size(); ++i)
    levels[i] = std::min(most_[i], buckets.levels[i] + seconds * per_second_[i]);
  return levels;
}

Status RateLimits::Take(const std::string& owner, int64_t bytes, TimePoint now) {
  if (per_second_ == std::array{0.0, 0.0}) return {};
  constexpr double kRounding = 1e-9;  // of a bucket: who comes just when he was told to finds enough
  const std::array wanted{1.0, static_cast<double>(bytes)};
  const MutexLock lock(mutex_);
  const auto found = owners_.find(owner);
  auto levels = found == owners_.end() ? most_ : LevelsAt(found->second, now);
  for (size_t i = 0; i < levels.size(); ++i) {
    if (per_second_[i] == 0) continue;
    const double lacking = std::min(wanted[i], most_[i]) - levels[i];
    if (lacking > most_[i] * kRounding)
      return TooFast(i, wanted[i], per_second_[i], lacking / per_second_[i]);
  }
  for (size_t i = 0; i < levels.size(); ++i) levels[i] -= wanted[i];
  owners_.insert_or_assign(owner, Buckets{levels, now});
  if (owners_.size() >= forget_at_) ForgetFull(now);
  return {};
}

void RateLimits::ForgetFull(TimePoint now) {
  std::erase_if(owners_, [&](const auto& owner) {
    const auto levels = LevelsAt(owner.second, now);
    return (per_second_[0] == 0 || levels[0] >= most_[0]) && (per_second_[1] == 0 || levels[1] >= most_[1]);
  });
  forget_at_ = std::max<size_t>(256, 2 * owners_.size());
}

size_t RateLimits::known() const {
  const MutexLock lock(mutex_);
  return owners_.size();
}

}  // namespace tilewire::engine
