#include "server/rpc/calls/running.h"

#include <utility>
#include <vector>

namespace tilewire::rpc {
namespace {
// What clients get to read a status that the server ends their call with, behind output that they have not
// read.
constexpr auto kTellingTime = std::chrono::seconds(1);
}  // namespace

Status ServerGone() {
  return Status(Code::kUnavailable, "DRAINING",
                "the server is going away and ended the call: its drain time is over");
}

void RunningCalls::Begin(std::weak_ptr<Endable> call) {
  const Endable* const key = call.lock().get();
  const MutexLock lock(mutex_);
  ++active_;
  calls_.emplace(key, Running{.call = std::move(call)});
}

void RunningCalls::BeginShort() {
  const MutexLock lock(mutex_);
  ++active_;
}

void RunningCalls::End(const Endable* call) {
  const MutexLock lock(mutex_);
  calls_.erase(call);
  if (--active_ == 0) ended_.NotifyAll();
}

void RunningCalls::EndShort() {
  End(nullptr);
}

void RunningCalls::BeginDrain() {
  const MutexLock lock(mutex_);  // who finds it draining finds all that wait anew
  if (draining_.exchange(true)) return;
  for (auto& [key, running] : calls_) running.waits_since.reset();
}

bool RunningCalls::IsLate(const Endable& call, TimePoint now, const MessagePatience& patience,
                          Running* running) {
  const uint64_t received = call.connection_bytes();
  const auto begin = [&] {
    running->waits_since = now;
    running->received = received;
    running->found_late = false;
  };
  if (!running->waits_since) begin();
  if (now - *running->waits_since < patience.within) return false;
  if (static_cast<double>(received - running->received) >= patience.moving_bytes) begin();
  return now > *running->waits_since && std::exchange(running->found_late, true);
}

void RunningCalls::CutUnopened(TimePoint now, const MessagePatience& patience, const Status& why) {
  // Let go of without the lock, since that may end them.
  std::vector<std::shared_ptr<Endable>> looked_at, late;
  {
    const MutexLock lock(mutex_);
    looked_at.reserve(calls_.size());
    for (auto& [key, running] : calls_) {
      auto call = running.call.lock();
      if (!call) continue;
      if (call->waits_for_open() && IsLate(*call, now, patience, &running)) late.push_back(call);
      looked_at.push_back(std::move(call));
    }
  }
  for (const auto& call : late)
    if (call->waits_for_open()) call->End(why, true);
}

void RunningCalls::TellAll(bool cut) {
  std::vector<std::shared_ptr<Endable>> running;
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, running_one] : calls_)  // one that is ending has no owner any more
      if (auto alive = running_one.call.lock()) running.push_back(std::move(alive));
  }
  for (const auto& call : running) call->End(ServerGone(), cut || call->waits_for_open());
}

void RunningCalls::EndAll(TimePoint until) {
  BeginDrain();
  for (const bool cut : {false, true}) {
    if (WaitIdle(until)) break;
    TellAll(cut);
    until = Clock::now() + kTellingTime;
  }
  WaitIdle(until);
  cutting_.store(true);
}

bool RunningCalls::WaitIdle(TimePoint until) {
  const MutexLock lock(mutex_);
  while (active_ > 0)
    if (!ended_.WaitUntil(mutex_, until)) return active_ == 0;
  return true;
}

}  // namespace tilewire::rpc
