#include "server/rpc/transport/crew.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "server/base/timing.h"
#include "server/rpc/transport/awaited.h"
#include "server/rpc/transport/coroutine.h"

namespace tilewire::rpc {
namespace {

// Calls that a thread takes at a time before others have to wait in line: what a few dozen callers send at
// once is served as it comes.
constexpr int kTakesAtOnce = 32;
// Of those in line between two looks at the queue: the more there are, the more go on, since what is read
// meanwhile would only be in line behind them.
constexpr size_t kGoOnAtOnce = 4, kMostGoOnAtOnce = 64, kInLineForEach = 16;
// Events before those in line have their turn, too.
constexpr int kEventsAtOnce = 64;
// Who looks awake more often than that and finds nothing has to wait: a look may read what is no event.
constexpr int kLooks = 3;
// Whoever waits awake beside others and finds nothing for so long is one too many.
constexpr std::chrono::microseconds kBeside{200};

}  // namespace

/// What the crew's thread that asks is doing.
struct Crew::Duty {
  Crew* crew = nullptr;
  Member* member = nullptr;
  int taken = 0;             ///< calls since the queue was seen empty
  int in_a_row = 0;          ///< calls since it last had to wait
  Clock::duration waited{};  ///< for an event, the last time that there was none
  Event* kept = nullptr;     ///< Keep
  bool kept_ok = false;
  bool close = false;  ///< the last call came closely after what had been done before it
  bool busy = false;   ///< for long, with one call
};
constinit thread_local Crew::Duty Crew::duty;

int Crew::resting() const {
  const MutexLock lock(mutex_);
  return static_cast<int>(resting_.size());
}

void Crew::Took(bool busy) {
  if (duty.crew == nullptr) return;
  duty.close = duty.waited < duty.crew->close_;
  ++duty.taken;
  if (busy) {
    duty.crew->WhoIsBusyCalls();
  } else if (++duty.in_a_row >= duty.crew->in_a_row_) {
    duty.in_a_row = 0;
    duty.crew->WhoIsBehindCalls();
  }
}

void Crew::StaysBusy() {
  if (duty.crew != nullptr) duty.crew->WhoIsBusyCalls();
}

bool Crew::IsBehind() {
  return duty.crew != nullptr && (duty.taken > kTakesAtOnce || duty.crew->has_line());
}

void Crew::Turn::await_suspend(std::coroutine_handle<> waits) {
  Crew* const crew = duty.crew;
  const MutexLock lock(crew->mutex_);
  crew->line_.push_back({.waits = waits, .whose = whose_});
  crew->line_length_.store(crew->line_.size(), std::memory_order_relaxed);
}

void Crew::Keep(Event* event, bool ok) {
  duty.kept = event;
  duty.kept_ok = ok;
}

void Crew::OneOfEachFirst() {
  if (duty.crew == nullptr) return;
  const MutexLock lock(duty.crew->mutex_);
  std::unordered_set<const void*> seen;
  std::deque<InLine> first, others;
  for (const InLine& one : duty.crew->line_) (seen.insert(one.whose).second ? first : others).push_back(one);
  first.insert(first.end(), others.begin(), others.end());
  duty.crew->line_.swap(first);
}

bool Crew::LetFirstGoOn() {
  const size_t some =
      std::clamp(line_length_.load(std::memory_order_relaxed) / kInLineForEach, kGoOnAtOnce, kMostGoOnAtOnce);
  for (size_t i = 0; i < some; ++i) {
    std::coroutine_handle<> first;
    {
      const MutexLock lock(mutex_);
      if (line_.empty()) return i > 0;
      first = line_.front().waits;
      line_.pop_front();
      line_length_.store(line_.size(), std::memory_order_relaxed);
    }
    Awaited::OfThisThread().Leave();
    GetsOn();
    first.resume();
  }
  return true;
}

void Crew::WhoIsBehindCalls() {
  const MutexLock lock(mutex_);
  if (awake_ - busy_ - standing_.load(std::memory_order_relaxed) < together_) Call();
}

void Crew::WhoIsBusyCalls() {
  const MutexLock lock(mutex_);
  if (!std::exchange(duty.busy, true)) ++busy_;
  Call();
}

void Crew::Call() {
  if ((watching_ > 0 && line_.empty()) || calls_ > 0 || resting_.empty()) return;
  ++calls_;
  Rests* const last = resting_.back();
  resting_.pop_back();
  last->is_called = true;
  last->called.NotifyOne();
}

void Crew::WasBusy() {
  const MutexLock lock(mutex_);
  --busy_;
  duty.busy = false;
}

void Crew::End() {
  const MutexLock lock(mutex_);
  duty.member->rests = true;
  ended_ = true;
  for (Rests* const one : resting_) one->called.NotifyOne();
}

bool Crew::TakesTurn() {
  const MutexLock lock(mutex_);
  if (!line_.empty()) return false;
  const bool beside_others = duty.close && watching_ < together_;
  if (!asleep_.load(std::memory_order_relaxed) && !ended_ && (watching_ == 0 || beside_others)) {
    ++watching_;
    duty.member->watches = true;
    return true;
  }
  Rests rests;
  resting_.push_back(&rests);
  --awake_;
  duty.member->rests = true;
  while (!rests.is_called && !ended_) rests.called.Wait(mutex_);
  duty.member->rests = false;
  ++awake_;
  if (rests.is_called) {
    --calls_;
  } else {
    std::erase(resting_, &rests);
  }
  duty.close = close_.count() > 0;  // there is more than others can do
  duty.waited = {};
  duty.in_a_row = 0;
  return false;
}

bool Crew::GetsOn() {
  duty.member->progress.Made();
  if (!duty.member->stands.load(std::memory_order_relaxed)) return false;
  StandsNoMore(duty.member);
  return true;
}

bool Crew::DoWhatIsThere() {
  void* tag = nullptr;
  bool ok = false;
  // What is kept nobody else has: never left with it.
  for (int events = 0; events < kEventsAtOnce || !has_line() || duty.kept != nullptr; ++events) {
    if (duty.busy) WasBusy();
    GetsOn();
    if (Event* const kept = std::exchange(duty.kept, nullptr)) {
      Awaited::OfThisThread().Leave();
      kept->Complete(duty.kept_ok);
      continue;
    }
    // Another thread gets what comes; gRPC 1.51 would lay this one down beside it, and wake it at once.
    if (asleep_.load(std::memory_order_relaxed)) {
      duty.taken = 0;
      return true;
    }
    switch (queue_->AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_REALTIME))) {
      case grpc::CompletionQueue::TIMEOUT:
        duty.taken = 0;
        return true;
      case grpc::CompletionQueue::SHUTDOWN:
        return false;
      case grpc::CompletionQueue::GOT_EVENT:
        Awaited::OfThisThread().Leave();
        static_cast<Event*>(tag)->Complete(ok);
    }
  }
  return true;
}

bool Crew::IsOneTooMany() {
  if (duty.member->watches && watching_ < 2) return false;
  WatchesNoMore(duty.member);
  duty.close = false;
  return true;
}

Crew::Found Crew::WatchAwake(TimePoint begin, void** tag, bool* ok) {
  int looks = 0;
  for (Clock::duration waited{}; waited < close_; waited = Clock::now() - begin) {
    if (waited >= kBeside) {
      const MutexLock lock(mutex_);
      if (IsOneTooMany()) return Found::kNothing;
    }
    const auto next = queue_->AsyncNext(tag, ok, gpr_time_0(GPR_CLOCK_REALTIME));
    GetsOn();
    if (next != grpc::CompletionQueue::TIMEOUT)
      return next == grpc::CompletionQueue::GOT_EVENT ? Found::kEvent : Found::kEnd;
    if (++looks > kLooks) duty.in_a_row = 0;
    sched_yield();  // whoever shares the core may have the next call to send
  }
  return WatchAsleep(tag, ok);
}

Crew::Found Crew::WatchAsleep(void** tag, bool* ok) {
  duty.close = false;
  duty.in_a_row = 0;
  {
    const MutexLock lock(mutex_);
    if (IsOneTooMany()) return Found::kNothing;
    asleep_.store(true, std::memory_order_relaxed);
    sleeper_ = duty.member;
  }
  for (;;) {
    const bool beside = standing_.load(std::memory_order_relaxed) > 0;
    const auto next = queue_->AsyncNext(tag, ok, After(beside ? Progress::kWaitsBeside : Progress::kWaits));
    const bool stood = GetsOn();
    if (next == grpc::CompletionQueue::TIMEOUT && !stood && !has_line()) continue;
    const MutexLock lock(mutex_);
    SleepsNoMore(duty.member);
    if (next == grpc::CompletionQueue::TIMEOUT) WatchesNoMore(duty.member);
    return next == grpc::CompletionQueue::GOT_EVENT ? Found::kEvent
           : next == grpc::CompletionQueue::TIMEOUT ? Found::kNothing
                                                    : Found::kEnd;
  }
}

bool Crew::DoNext() {
  void* tag = nullptr;
  bool ok = false;
  const TimePoint begin = Clock::now();
  const Found found = duty.close ? WatchAwake(begin, &tag, &ok) : WatchAsleep(&tag, &ok);
  if (found == Found::kNothing) return true;
  duty.waited = Clock::now() - begin;
  {
    const MutexLock lock(mutex_);
    WatchesNoMore(duty.member);
  }
  if (found == Found::kEvent) static_cast<Event*>(tag)->Complete(ok);
  return found != Found::kEnd;
}

void Crew::Run() {
  {
    const MutexLock lock(mutex_);
    ++awake_;
    duty.member = &members_.emplace_back();
  }
  duty.crew = this;
  Awaited& awaited = Awaited::OfThisThread();
  while (DoWhatIsThere()) {
    GetsOn();
    if (has_line() && LetFirstGoOn()) continue;
    if (awaited.any()) {
      awaited.Look();
    } else if (TakesTurn() && !DoNext()) {
      break;
    }
  }
  duty.crew = nullptr;
  End();
}

}  // namespace tilewire::rpc
