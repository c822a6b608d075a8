// Makes calls in a closed or an open loop, and measures a window of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "client/load/answer.h"
#include "client/load/arrivals.h"
#include "client/load/statistics.h"

namespace tilewire::load {

/// Ends the window once it is stable: over the last `windows` windows of `window_seconds`, calls a second and
/// the median latency each vary by at most `within` (largest − smallest ÷ mean). Gives up after
/// `max_seconds`.
struct StableRule {
  double within = 0.05;
  uint32_t windows = 3;
  double window_seconds = 1;
  double max_seconds = 60;
};

struct LoadOptions {
  /// Calls a second of an open loop: every due call starts, late if it must, and its latency counts from when
  /// it was due. None: closed, each caller calls again when it has its answer.
  std::optional<double> rate;
  Arrivals arrivals = Arrivals::kPoisson;  ///< of an open loop
  uint32_t callers = 1;                    ///< threads; so many calls are under way at most
  uint64_t seed = 1;
  std::vector<double> weights;       ///< of the operations
  uint32_t inputs = 1;               ///< of each operation
  double warmup_seconds = 0;         ///< calls that are verified but not measured
  std::optional<double> seconds;     ///< of the window; or
  std::optional<uint64_t> requests;  ///< that many calls; or
  std::optional<StableRule> stable;  ///< until stable
  double patience_seconds = 5;       ///< open: due calls may still start that long after the window's end
  double lost_seconds = 5;           ///< nothing but UNAVAILABLE for that long: the server is lost
  double stop_seconds = 2;           ///< calls may take that long to end after a stop request
};

enum class StopReason : uint8_t { kSeconds, kRequests, kStable, kDone, kInterrupted, kServerLost };

/// How starts kept to their schedule (open loops; else zeros).
struct Punctuality {
  uint64_t starts = 0;
  uint64_t late = 0;       ///< 1 ms or more after they were due
  uint64_t woke_late = 0;  ///< of those, with a free caller: the generator's own fault
  uint64_t never = 0;      ///< due, and not started when patience ended: errors `NOT_STARTED`
  double max_late_us = 0;
};

/// What a window gave.
struct LoadResult {
  Measured measured;
  StopReason reason = StopReason::kDone;
  std::string text;  ///< the reason in words
  Punctuality punctuality;
  uint64_t outside_wrong = 0;   ///< wrong answers before or after the window
  uint64_t outside_failed = 0;  ///< failed calls before it
  /// Of all callers, in calls that count: how long they waited for a clean place for a result, or checked one
  /// themselves. Not part of any latency, but in a closed loop they would have called.
  double held_up_seconds = 0;
  double cpu_share = 0;    ///< of all cores, by this process, within the window
  std::string started;     ///< ISO 8601 UTC, of the window
  bool abandoned = false;  ///< calls did not end in time: their threads still run, so end by _exit
};

/// The share of the callers' time in the window that checking took from them.
double CheckingShare(const LoadResult& load, uint32_t callers);
/// From this share on checking limits the rate of a closed loop, and it is said.
inline constexpr double kCheckingLimits = 0.01;

/// Where the window is, for a progress line.
struct LoadProgress {
  bool warming_up;
  double seconds;           ///< since the warm-up's or the window's begin
  uint64_t calls, errors;   ///< measured so far, errors with wrong answers
  double calls_per_second;  ///< of the last second or so
};

/// Now, ISO 8601, UTC: "2026-01-31T12:00:00Z".
std::string IsoNow();

/// Runs a window of `call`s. An answer's check runs on other threads (CheckerCount()); all are done when this
/// returns. Latency ends when the answer was with the caller, and counts from when the call was due (open) or
/// began (closed). Which call is made follows from the seed (open: in the order of due times;
/// closed: for each caller). A closed loop counts calls that end in the window, and those under way at its
/// end where they fail or are wrong; an open loop counts calls that were due in it, and its window lasts
/// until the last of them has ended; `requests` counts exactly so many calls. A failed closed call waits 10
/// ms, or as long as a BUSY server asks (at most 1 s), before the next. Ends early when the server is lost or
/// `stop` is requested. `on_progress` is called about ten times a second on the calling thread; may be empty.
LoadResult RunLoad(const LoadOptions& options, const Call& call, const std::stop_token& stop,
                   const std::function<void(const LoadProgress&)>& on_progress = {});

}  // namespace tilewire::load
