#include "server/rpc/calls/message_watch.h"

#include <algorithm>
#include <future>
#include <limits>
#include <string>

#include "server/base/limits.h"

namespace tilewire::rpc {
namespace {

// A call may have three times as much more: until it is found waiting, and until it is found late twice.
constexpr std::chrono::milliseconds kEvery(500);
constexpr double kInfinite = std::numeric_limits<double>::infinity();

Status Draining() {
  return Status(Code::kUnavailable, "DRAINING",
                "the server is draining, and the call's message was not here; try another");
}

Status TooLate(Clock::duration within) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(within).count();
  return Status(Code::kDeadlineExceeded, "IDLE",
                "no whole message within " + std::to_string(seconds) +
                    " s, --idle-seconds and what 4 MiB take at --least-rate, and its connection "
                    "brought less than that rate; the call was given up");
}

}  // namespace

MessagePatience PatienceWith(double idle_seconds, double least_rate) {
  const double seconds = idle_seconds + static_cast<double>(kMaxUnaryBytes) / least_rate;
  constexpr double kForEver = 1e9;  // some 32 years
  if (!(least_rate > 0) || seconds >= kForEver) return {Clock::duration::max(), kInfinite};
  return {std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)),
          least_rate * seconds};
}

MessageWatch::MessageWatch(RunningCalls* running, Timer* timer, double idle_seconds, double least_rate)
    : running_(running),
      timer_(timer),
      patience_(PatienceWith(idle_seconds, least_rate)),
      late_(TooLate(patience_.within)) {
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
    running_->CutUnopened(
        now, {std::min<Clock::duration>(patience_.within, kMessageWhileDraining), kInfinite}, Draining());
  else
    running_->CutUnopened(now, patience_, late_);
  const MutexLock lock(mutex_);
  if (!stopped_) next_look_ = timer_->At(now + kEvery, [this] { Look(); });
}

}  // namespace tilewire::rpc
