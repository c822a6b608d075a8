#include "server/rpc/calls/turns.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace tilewire::rpc {
namespace {

using Seconds = std::chrono::duration<double>;

// Whoever has not called for so long counts no more.
constexpr std::chrono::milliseconds kGone{250};
// Until a connection is asked again where its calls keep coming: it sent them before it knew, for its clients
// are far away or its socket was full, or the call that told it was given up.
constexpr std::chrono::milliseconds kAgain{100};
constexpr std::chrono::milliseconds kLeastHold{5}, kLongestHold{512};
constexpr std::chrono::milliseconds kFine{1};
// Seconds for which calls count that waited.
constexpr double kWaitedLately = 40e-3;
// Of those of a connection that nobody has read: what is known of them is a guess.
constexpr int kMostUnread = 256;
// Seconds after which what was sent before is of no account.
constexpr double kAnewSeconds = 0.02;

}  // namespace

bool Turns::Calls(const std::shared_ptr<Turn>& turn, TimePoint now) {
  if (now - turn->seen.load(std::memory_order_relaxed) >= kFine)
    turn->seen.store(now, std::memory_order_relaxed);
  if (turn->order.load(std::memory_order_relaxed) != 0) return false;
  const MutexLock lock(mutex_);
  if (turn->order.load(std::memory_order_relaxed) != 0) return false;
  turn->order.store(next_++, std::memory_order_relaxed);
  turns_.push_back(turn);
  new_ += 1 - share_;
  if (new_ < 1) return false;
  new_ -= 1;
  return true;
}

Turns::Parts Turns::Count(TimePoint now) {
  const MutexLock lock(mutex_);
  parts_ = {};
  std::erase_if(turns_, [&](const std::shared_ptr<Turn>& turn) TILEWIRE_REQUIRES(mutex_) {
    if (turn.use_count() == 1) return true;  // the connection is gone
    const TimePoint until = turn->until.load(std::memory_order_relaxed);
    if (now < until) return ++parts_.hold, false;
    // Who held back has been able to call since then alone.
    if (now - std::max(until, turn->seen.load(std::memory_order_relaxed)) <= kGone)
      return ++parts_.send, false;
    turn->order.store(0, std::memory_order_relaxed);
    return true;
  });
  CountPeers(Seconds(now - std::exchange(counted_, now)).count());
  return parts_;
}

void Turns::CountPeers(double seconds) {
  for (const auto& turn : turns_)
    if (turn->of_peer) turn->of_peer->counted = 0;
  for (const auto& turn : turns_)
    if (turn->of_peer)
      turn->of_peer->counted += turn->waiting.load(std::memory_order_relaxed) +
                                std::min(turn->unread.load(std::memory_order_relaxed), kMostUnread);
  const double lasts = std::exp(-seconds / kWaitedLately);
  int all = 0, peers = 0;
  for (const auto& turn : turns_) {
    PeerWaits* const peer = turn->of_peer.get();
    if (peer == nullptr || peer->counted < 0) continue;
    // Of who has many, few wait now and then for a moment.
    const auto before = static_cast<int>(lasts * peer->lately.load(std::memory_order_relaxed));
    const int waits = std::max(std::exchange(peer->counted, -1), before);
    peer->lately.store(waits, std::memory_order_relaxed);
    all += waits;
    if (waits > 0) ++peers;
  }
  few_.store(all / (2 * std::max(peers, 1)), std::memory_order_relaxed);
}

void Turns::Choose(TimePoint now, const Plan& plan) {
  const MutexLock lock(mutex_);
  const int all = std::max(parts_.send + parts_.hold, 1);
  const double may = plan.share * all;
  step_ = std::min<Clock::duration>(plan.step, Clock::duration(kLongestHold) / all), least_ = plan.least;
  waiting_.store(plan.waiting, std::memory_order_relaxed);
  const double passed = Seconds(now - chosen_).count(), most = Seconds(step_).count();
  if (passed > kAnewSeconds || parts_.send + parts_.hold == 0) surplus_ = 0;
  chosen_ = now, share_ = plan.share;
  // Between two numbers of connections now this and now that one, so that it comes right in the mean.
  surplus_ = std::clamp(surplus_ + (parts_.send - may) * std::min(passed, kAnewSeconds), -most, most);
  const int too_many = parts_.send - static_cast<int>(surplus_ > 0 ? std::floor(may) : std::ceil(may));
  orders_.clear();
  if (too_many > 0)
    for (const auto& turn : turns_)
      if (now >= turn->until.load(std::memory_order_relaxed) && HasMany(*turn))
        orders_.push_back(turn->order.load(std::memory_order_relaxed));
  if (orders_.empty()) return last_asked_.store(0, std::memory_order_relaxed);
  // Where few may be asked they send as large a part as all: the most of what comes may be theirs.
  const auto part = static_cast<int>(std::ceil((1 - plan.share) * static_cast<double>(orders_.size())));
  const auto last = orders_.begin() + std::clamp<std::ptrdiff_t>(part, 1, too_many) - 1;
  std::nth_element(orders_.begin(), last, orders_.end());
  last_asked_.store(*last, std::memory_order_relaxed);
}

std::optional<Clock::duration> Turns::Asks(Turn* turn, TimePoint now, bool at_once) {
  const TimePoint until = turn->until.load(std::memory_order_relaxed);
  if (now < until) return IsOfFew(*turn) ? std::nullopt : AsksAgain(turn, until, now);
  const uint64_t order = turn->order.load(std::memory_order_relaxed);
  if (order == 0 || (!at_once && order > last_asked_.load(std::memory_order_relaxed)) || !HasMany(*turn))
    return std::nullopt;
  const MutexLock lock(mutex_);
  if (turn->order.load(std::memory_order_relaxed) != order ||
      now < turn->until.load(std::memory_order_relaxed))
    return std::nullopt;  // another call of it was told meanwhile
  last_comes_ = std::clamp<TimePoint>(last_comes_ + step_,
                                      now + std::min<Clock::duration>(std::max(step_, least_), kLongestHold),
                                      now + kLongestHold);
  const Clock::duration hold = std::max<Clock::duration>(last_comes_ - now, kLeastHold);
  turn->until.store(now + hold, std::memory_order_relaxed);
  turn->told.store(now + std::min<Clock::duration>(hold, kAgain), std::memory_order_relaxed);
  turn->order.store(next_++, std::memory_order_relaxed);
  return hold;
}

std::optional<Clock::duration> Turns::AsksAgain(Turn* turn, TimePoint until, TimePoint now) {
  TimePoint told = turn->told.load(std::memory_order_relaxed);
  const Clock::duration rest = until - now;
  if (now < told || rest < kLeastHold ||
      !turn->told.compare_exchange_strong(told, now + std::min<Clock::duration>(rest, kAgain)))
    return std::nullopt;
  return rest;
}

}  // namespace tilewire::rpc
