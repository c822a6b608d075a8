// What the listener's thread does for all connections that there are.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "server/rpc/listener/listener.h"

namespace tilewire::rpc {
namespace {

// At memory, unless it grows; at connections sooner where they are few: what takes no memory takes time.
constexpr std::chrono::milliseconds kLookEvery{250};
constexpr std::chrono::microseconds kLookEach{25};
constexpr int kWatchMs = 50, kWatchSoonMs = 10, kWatchAtOnceMs = 2;

// After connections were ended: their calls end by and by.
constexpr int kTrims = 10;
constexpr std::chrono::seconds kTrimEvery{1};

}  // namespace

int Listener::WatchAgainMs() const {
  // Each core makes gigabytes a second of headers that expand: those that are shed must be all that matter.
  return memory_.over() ? kWatchAtOnceMs : memory_.near() ? kWatchSoonMs : kWatchMs;
}

void Listener::LookAfterAll() {
  const TimePoint now = Clock::now();
  if (connections_.empty()) {
    if (std::exchange(any_, false) && look_after_) look_after_(now);
    return;
  }
  if (!std::exchange(any_, true)) {
    connections_.Rest(std::chrono::duration<double>(now - last_look_).count());
    last_look_ = now;
  }
  if (now < watch_next_) return;
  last_watch_ = now;
  watch_next_ = now + std::chrono::milliseconds(WatchAgainMs());
  if (look_after_) look_after_(now);
  for (const Connections::Id kept : hand_overs_->LookAfter(now)) connections_.CutOff(kept);
  const bool at_memory =
      now - memory_looked_ >= kLookEvery || memory_.near() || memory_.over() || memory_.HasGrown();
  // This first: whose bytes it holds is looked at after.
  const bool is_short = at_memory && memory_.Short();
  if (at_memory ||
      now - last_look_ >= std::min<Clock::duration>(kLookEvery, connections_.size() * kLookEach)) {
    connections_.Look(std::chrono::duration<double>(now - last_look_).count());
    last_look_ = now;
  }
  if (!at_memory) return;
  memory_looked_ = now;
  watch_next_ = now + std::chrono::milliseconds(WatchAgainMs());
  if (!is_short) return;
  const int count = connections_.ShedWorst();
  if (count == 0) return;
  observer_->OnWarning("memory is short: " + std::to_string(count) +
                       " connections ended that hold most of what no call took");
  trims_left_ = kTrims;
}

void Listener::GiveBack() {
  if (trims_left_ == 0 || Clock::now() < trim_next_) return;
  --trims_left_;
  trim_next_ = Clock::now() + kTrimEvery;
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

void Listener::LookSoon() {
  watch_next_ = std::min(watch_next_, last_watch_ + std::chrono::milliseconds(kWatchSoonMs));
}

}  // namespace tilewire::rpc
