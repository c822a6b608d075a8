#include "server/rpc/calls/message_watch.h"

#include <algorithm>
#include <future>
#include <string>

#include "server/base/limits.h"

namespace tilewire::rpc {
namespace {

// Calls may have as much more.
constexpr std::chrono::milliseconds kEvery(500);

Status Draining() {
  return Status(Code::kUnavailable, "DRAINING",
                "the server is draining, and the call's message was not here; try another");
}

Status TooLate(Clock::duration within) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(within).count();
  return Status(Code::kDeadlineExceeded, "IDLE",
                "no whole message within " + std::to_string(seconds) +
                    " s, --idle-seconds and what the largest takes at --least-rate; the call was given up");
}

}  // namespace

Clock::duration LongestMessage(double idle_seconds, double least_rate) {
  const double seconds = idle_seconds + static_cast<double>(kMaxMessageBytes) / least_rate;
  constexpr double kForEver = 1e9;  // some 32 years
  if (!(least_rate > 0) || seconds >= kForEver) return Clock::duration::max();
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

MessageWatch::MessageWatch(RunningCalls* running, Timer* timer, double idle_seconds, double least_rate)
    : running_(running),
      timer_(timer),
      within_(LongestMessage(idle_seconds, least_rate)),
      late_(TooLate(within_)) {
  const MutexLock lock(mutex_);
  next_look_ = timer_->At(timer_->Now() + kEvery, [this] { Look(); });
}

MessageWatch::~MessageWatch() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    timer_->Cancel(next_look_);
  }
  // A look that has begun ends before this begins.
  std::promise<void> after;
  timer_->Post([&after] { after.set_value(); });
  after.get_future().wait();
}

void MessageWatch::Look() {
  const TimePoint now = timer_->Now();
  if (running_->draining())
    running_->CutUnopened(now, std::min<Clock::duration>(within_, kMessageWhileDraining), Draining());
  else
    running_->CutUnopened(now, within_, late_);
  const MutexLock lock(mutex_);
  if (!stopped_) next_look_ = timer_->At(now + kEvery, [this] { Look(); });
}

}  // namespace tilewire::rpc
