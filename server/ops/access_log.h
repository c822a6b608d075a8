// One log line for each finished call.
#pragma once

#include <spdlog/common.h>

#include <chrono>

#include "server/ops/failure_fold.h"
#include "server/rpc/calls/observer.h"

namespace tilewire::ops {

/// Logs the event "call" of `now` with who, what, how it ended and where the time went; fields that are empty
/// or were not observed are left out. Thread-safe.
void LogCall(const rpc::CallRecord& record,
             std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

/// Logs the event "calls folded" with what `calls` of them, which have no line of their own, have in common.
/// Thread-safe.
void LogFolded(const FailureKind& kind, uint64_t calls);

/// Warn where the server failed its client (overload, faults, expired deadlines), else info: what clients do
/// wrong is no fault of the server.
spdlog::level::level_enum CallLevel(const Status& status);

}  // namespace tilewire::ops
