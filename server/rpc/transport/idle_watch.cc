#include "server/rpc/transport/idle_watch.h"

#include <utility>

namespace tilewire::rpc {

void IdleWatch::Start(std::weak_ptr<void> owner, Timer* timer, double idle_seconds, int64_t block_bytes,
                      std::function<int()> sharers, OnIdle on_idle) {
  {
    MutexLock lock(mutex_);
    owner_ = std::move(owner);
    timer_ = timer;
    idle_ = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(idle_seconds));
    block_bytes_ = static_cast<uint64_t>(block_bytes);
    sharers_ = std::move(sharers);
    on_idle_ = std::move(on_idle);
    watching_ = true;
  }
  Look(0, timer_->Now());
}

void IdleWatch::Stop() {
  MutexLock lock(mutex_);
  watching_ = false;
  if (timer_) timer_->Cancel(std::exchange(next_look_, 0));
}

void IdleWatch::Look(uint64_t last_progress, TimePoint since) {
  const TimePoint now = timer_->Now();
  const uint64_t progress = blocks_read.load() + bytes_written.load() / block_bytes_ + steps.load();
  if (progress != last_progress || !(reading.load() || writing.load())) since = now;
  // A client that reads gets the status with its details; one that does not, or that never opened, can only
  // be cut off.
  if (now - since >= idle_ * sharers_()) on_idle_(writing.load() || !opened.load());
  MutexLock lock(mutex_);
  if (!watching_) return;
  next_look_ = timer_->At(now + idle_ / 8, [this, owner = owner_, progress, since] {
    if (const auto alive = owner.lock()) Look(progress, since);
  });
}

}  // namespace tilewire::rpc
