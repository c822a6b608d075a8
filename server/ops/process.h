// What concerns the whole process: allocator, descriptors, signals. Only main calls these.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "kernels/array/status.h"

namespace tilewire::ops {

/// Prepares the process; call first in main, before any thread starts (threads inherit the signal mask) and
/// before large allocations.
/// - Tunes glibc's allocator, if `tune_allocator`: without it, receiving bulk data is spent in page faults.
/// - Drops Abseil's checks of locks (base/lock_checks.h).
/// - Raises the limit of open files to its hard limit. FAILED_PRECONDITION below 1024: a listener that runs
/// out of
///   descriptors stays deaf for ever.
/// - Ignores SIGPIPE, and SIGHUP, which would end it without a drain; blocks SIGTERM and SIGINT, which
/// WaitForSignal takes. `warning`, where not null, gets a sentence where something is worse than it should be
/// (fewer than 4096 open files, allocator not tuned), else it is emptied.
Status PrepareProcess(std::string* warning = nullptr, bool tune_allocator = true);

/// Waits for SIGTERM or SIGINT and returns its number. PrepareProcess must have run.
int WaitForSignal();

/// Waits at most that long; true where SIGTERM or SIGINT came. A second signal during drain ends it at once.
bool WaitForSignalFor(std::chrono::milliseconds timeout);

/// Makes WaitForSignal return, as SIGTERM would: for a thread that finds the server beyond saving.
/// Thread-safe.
void RequestStop();

/// What limits on open files mean for the server; apart from PrepareProcess so that tests can ask. OK, or
/// FAILED_PRECONDITION; `warning` as above.
Status JudgeOpenFiles(uint64_t limit, std::string* warning);

}  // namespace tilewire::ops
