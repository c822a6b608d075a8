#include "server/rpc/drain.h"

#include <algorithm>

namespace tilewire::rpc {
namespace {

constexpr std::chrono::milliseconds kPause(20), kQuiet(300);
constexpr std::chrono::seconds kLongestLinger(5);

/// Calls that come in the moment in which gRPC closes its connections end CANCELLED, without details, and
/// CANCELLED is not what clients retry. So while calls keep coming they go on being told UNAVAILABLE, until
/// none has come for a while: a balancer has noticed by then. Somebody who never stops does not keep the
/// server.
void Linger(const Server& server, const TimeSource& time, TimePoint until, const Pause& pause) {
  const TimePoint end = std::min(until, time.Now() + kLongestLinger);
  while (time.Now() < end && time.Now() - server.last_arrival() < kQuiet)
    if (pause(kPause)) return;
}

}  // namespace

bool Drain(Server* server, const TimeSource& time, Clock::duration most, const Pause& pause) {
  server->SetReady(false);
  server->BeginDrain();
  const TimePoint until = time.Now() + most;
  bool idle = false;
  while (!(idle = server->WaitIdle(Clock::now())) && time.Now() < until)
    if (pause(kPause)) break;
  if (idle) Linger(*server, time, until, pause);
  server->Shutdown(Clock::now());
  return idle;
}

}  // namespace tilewire::rpc
