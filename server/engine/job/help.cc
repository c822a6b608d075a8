// The thread that opened a job lends itself to the job's lane, so that nobody has to be woken for it.
#include "server/engine/job/job.h"

namespace tilewire::engine {
namespace {

/// Longer than a small request's work on either device, shorter than anybody else on this thread would mind.
constexpr std::chrono::microseconds kHelp{200};
/// Of Await(): an event or two is asked for.
constexpr std::chrono::microseconds kGlance{2};
/// Of a job that is awaited, in all, as lanes' own threads stay awake for it. What takes longer must not burn
/// a core.
constexpr std::chrono::milliseconds kAwake{1};

}  // namespace

void Job::AnnounceHelp() {
  if (!MayBeHelped() && !MayBeAwaited()) return;
  help_announced_ = true;
  await_until_ = Clock::now() + kAwake;
  HelpedLane()->AnnounceHelp();
}

void Job::Help() {
  if (MayBeHelped()) HelpedLane()->Help(kHelp);
  WithdrawHelp();
}

bool Job::Await() {
  if (!help_announced_) return false;
  HelpedLane()->Help(kGlance);
  bool over = Clock::now() >= await_until_;
  if (!over) {
    MutexLock lock(mutex_);
    over = !status_.ok() || ready_bytes_ == operation_->result_bytes();
  }
  if (over) WithdrawHelp();
  return !over;
}

void Job::WithdrawHelp() {
  if (help_announced_.exchange(false)) HelpedLane()->WithdrawHelp();
}

}  // namespace tilewire::engine
