#include "server/rpc/transport/allowance.h"

#include <algorithm>

namespace tilewire::rpc {
namespace {

constexpr int64_t kRetryAfterMs = 250;
// What a share may have is so many times what is free.
constexpr int64_t kTimesFree = 3;

}  // namespace

size_t Allowance::shares() const {
  const MutexLock lock(mutex_);
  return counted_.size();
}

int64_t Allowance::Beyond(int64_t before, int64_t bytes) const {
  return std::clamp<int64_t>(before + bytes - unasked_, 0, bytes);
}

Status Allowance::TakeCounted(int64_t bytes, const std::string& share, Held* held) {
  int64_t before = 0, has = 0;
  bool too_much = false;
  {
    const MutexLock lock(mutex_);
    const auto found = counted_.find(share);
    has = found == counted_.end() ? 0 : found->second;
    before = held_.load();
    bool own_too_much = false;
    do {  // whoever needs no lock may come in between
      const int64_t free = limit_ - before - bytes, beyond = Beyond(before, bytes);
      const bool alone = before <= held->bytes;
      too_much = !alone && free < 0;
      own_too_much = !alone && beyond > 0 && has + beyond > kTimesFree * free;
    } while (!too_much && !own_too_much && !held_.compare_exchange_weak(before, before + bytes));
    if (!too_much && !own_too_much) {
      held->bytes += bytes;
      CountLocked(Beyond(before, bytes), share, held);
      return {};
    }
  }
  if (too_much)
    return Busy(what_ + " hold " + std::to_string(before) + " bytes for messages; allowed: " +
                    std::to_string(limit_) + " (a share of " + share_of_ + ")",
                kRetryAfterMs);
  return Busy(what_ + " of one caller hold " + std::to_string(has) +
                  " bytes for messages beyond what all may; allowed: " +
                  std::to_string(kTimesFree * (limit_ - before - bytes)) +
                  " (three times what would be left of a share of " + share_of_ + ")",
              kRetryAfterMs);
}

void Allowance::Count(int64_t bytes, const std::string& share, Held* held) {
  const MutexLock lock(mutex_);
  CountLocked(bytes, share, held);
}

void Allowance::CountLocked(int64_t bytes, const std::string& share, Held* held) {
  if (bytes == 0) return;
  held->counted += bytes;
  const auto of_share = counted_.try_emplace(share, 0).first;
  of_share->second += bytes;
  if (of_share->second == 0) counted_.erase(of_share);
}

}  // namespace tilewire::rpc
