#include "server/rpc/transport/idle_watch.h"

#include <algorithm>
#include <utility>

namespace tilewire::rpc {
namespace {

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}
double Seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void IdleWatch::Start(std::weak_ptr<void> owner, Timer* timer, const Patience& patience, CallFacts facts,
                      OnLate on_late) {
  {
    MutexLock lock(mutex_);
    owner_ = std::move(owner);
    timer_ = timer;
    patience_ = patience;
    facts_ = std::move(facts);
    on_late_ = std::move(on_late);
    watching_ = true;
  }
  const TimePoint now = timer_->Now();
  const double slow_for = std::min(patience.idle_seconds, Seconds(Clock::duration(kSlowFor)));
  Look({.since = now, .at = now, .pace = Pace(patience.least_rate, slow_for)});
}

void IdleWatch::Stop() {
  MutexLock lock(mutex_);
  watching_ = false;
  if (timer_) timer_->Cancel(std::exchange(next_look_, 0));
}

std::optional<Late> IdleWatch::Judge(const Seen& seen) const {
  const Clock::duration idle = Seconds(patience_.idle_seconds), still = seen.at - seen.since;
  if (reading.load() && !opened.load() && still >= std::min<Clock::duration>(idle, kOpenWithin))
    return Late::kNeverOpened;
  if (still >= idle * facts_.sharers()) return Late::kIdle;
  if (seen.pace.too_slow() && facts_.others_wait()) return Late::kSlow;
  return std::nullopt;
}

void IdleWatch::Look(Seen last) {
  const TimePoint now = timer_->Now();
  const bool waits = (reading.load() || writing.load()) && !facts_.held_up();
  const uint64_t blocks_written = bytes_written.load() / static_cast<uint64_t>(patience_.block_bytes);
  const uint64_t progress = blocks_read.load() + blocks_written + steps.load(), moved = facts_.moved();
  Seen seen = last;
  seen.progress = progress;
  seen.moved = moved;
  seen.at = now;
  if (progress != last.progress || !waits) seen.since = now;
  // The job may be gone again.
  const uint64_t bytes = moved - std::min(moved, last.moved);
  seen.pace.Update(Seconds(now - last.at), bytes, waits && opened.load());
  // A client that reads gets the status with its details; one that does not, or that never opened, can only
  // be cut off.
  if (const auto late = Judge(seen)) on_late_(*late, writing.load() || !opened.load());
  MutexLock lock(mutex_);
  if (!watching_) return;
  Clock::duration wait = Seconds(patience_.idle_seconds);
  if (patience_.least_rate > 0) wait = std::min<Clock::duration>(wait, kSlowFor);
  next_look_ = timer_->At(now + wait / 8, [this, owner = owner_, seen] {
    if (const auto alive = owner.lock()) Look(seen);
  });
}

}  // namespace tilewire::rpc
