// The end of a server that leaves nobody standing.
#pragma once

#include <chrono>
#include <functional>

#include "server/base/time_source.h"
#include "server/rpc/server.h"

namespace tilewire::rpc {

/// Sleeps for that long at most; true: end at once.
using Pause = std::function<bool(std::chrono::milliseconds)>;

/// Not ready, no new jobs; running calls go on until they end, `most` is over by `time`, which is the
/// server's, or `pause` says so. Then lingers while calls keep coming, five seconds at most, and shuts down.
/// False where calls were cut short.
bool Drain(Server* server, const TimeSource& time, Clock::duration most, const Pause& pause);

}  // namespace tilewire::rpc
