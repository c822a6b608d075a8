#include "server/rpc/calls/context.h"

#include <memory>

#include "server/rpc/calls/call.h"

namespace tilewire::rpc {

void CallContext::Begin(Call* call) {
  const MutexLock lock(mutex);
  ++active;
  if (call) calls.insert(call);
}

void CallContext::End(Call* call) {
  const MutexLock lock(mutex);
  calls.erase(call);
  if (--active == 0) ended.NotifyAll();
}

namespace {
// What clients get to read a status that the server ends their call with, behind output that they have not
// read.
constexpr auto kTellingTime = std::chrono::seconds(1);
}  // namespace

Status ServerGone() {
  return Status(Code::kUnavailable, "DRAINING",
                "the server is going away and ended the call: its drain time is over");
}

void CallContext::AbortAll(bool cut) {
  std::vector<std::shared_ptr<Call>> running;
  {
    const MutexLock lock(mutex);
    for (Call* const call : calls)  // one that is ending has no owner any more
      if (auto alive = call->weak_from_this().lock()) running.push_back(std::move(alive));
  }
  for (const auto& call : running) call->Abort(ServerGone(), cut || call->waits_for_open());
}

void CallContext::EndCalls(TimePoint until) {
  draining.store(true);
  for (const bool cut : {false, true}) {
    if (WaitIdle(until)) break;
    AbortAll(cut);
    until = Clock::now() + kTellingTime;
  }
  WaitIdle(until);
  cutting.store(true);
}

bool CallContext::WaitIdle(TimePoint until) {
  const MutexLock lock(mutex);
  while (active > 0)
    if (!ended.WaitUntil(mutex, until)) return active == 0;
  return true;
}

}  // namespace tilewire::rpc
