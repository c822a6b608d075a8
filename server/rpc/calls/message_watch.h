// Gives up on calls whose first message does not come.
#pragma once

#include <chrono>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/base/timer.h"
#include "server/rpc/calls/running.h"

namespace tilewire::rpc {

/// What the first message of a call may take while the server drains, if not less: what it brings would be
/// refused, most likely.
inline constexpr std::chrono::seconds kMessageWhileDraining{2};

/// What the message of a unary call may take after its headers: as long as the largest one takes at
/// `least_rate` bytes a second, and `idle_seconds`; and as long again for each such time in which its
/// connection keeps to that rate, since others' bytes may go first. Without a rate: any time.
MessagePatience PatienceWith(double idle_seconds, double least_rate);

/// Looks at all calls again and again, so that none pays for it: unary ones have no IdleWatch before they
/// reply. Those of which no message came in time are cut, DEADLINE_EXCEEDED `IDLE` or, while the server
/// drains, UNAVAILABLE `DRAINING`. Calls that gRPC hands over with their message (Arrays.Get, health) are not
/// known before. Thread-safe.
class MessageWatch {
 public:
  /// Both outlive it.
  MessageWatch(RunningCalls* running, Timer* timer, double idle_seconds, double least_rate);
  /// Waits for what looks. Not on the timer's thread.
  ~MessageWatch();
  MessageWatch(const MessageWatch&) = delete;

 private:
  void Look();

  RunningCalls* const running_;
  Timer* const timer_;
  const MessagePatience patience_;
  const Status late_;
  Mutex mutex_;
  Timer::Id next_look_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  bool stopped_ TILEWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace tilewire::rpc
