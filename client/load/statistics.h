// What is kept of the calls of a window.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/load/answer.h"
#include "client/load/histogram.h"

namespace tilewire::load {

inline constexpr std::array<const char*, 8> kStageNames{"queue",  "receive", "stage", "h2d",
                                                        "kernel", "d2h",     "send",  "other"};
/// Kinds of errors that are kept apart; the rest counts as "OTHER".
inline constexpr size_t kMaxErrorKinds = 32;

/// "RESOURCE_EXHAUSTED/BUSY", or "UNAVAILABLE" where there is no reason.
std::string ErrorKey(const Status& status);

/// Sum and number of what some calls observed.
struct Mean {
  double sum = 0;
  uint64_t count = 0;
  void Add(double value) { sum += value, ++count; }
  void Merge(const Mean& other) { sum += other.sum, count += other.count; }
  double value() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
};

/// Calls of one operation, or of all. Copyable; not thread-safe.
struct CallStats {
  uint64_t good = 0, wrong = 0, failed = 0;
  std::map<std::string, uint64_t> errors;
  uint64_t bytes = 0, resident_bytes = 0, region_bytes = 0;  ///< of good calls, as in Answer
  Histogram latency, service;  ///< from the intended and from the actual start, of answered calls
  std::array<Mean, kStageNames.size()> stages;  ///< as kStageNames, of good calls
  Mean overlap;
  std::map<std::string, uint64_t> bottlenecks;  ///< that the server named, of good calls

  uint64_t calls() const { return good + wrong + failed; }
  void Add(const Answer& answer, double latency_us, double service_us);
  /// Calls that were due and never started.
  void AddError(const std::string& key, uint64_t count);
  void Merge(const CallStats& other);
};

/// The window in equal steps, never more than kMaxSteps: when it grows beyond them, neighbours are taken
/// together.
class Timeline {
 public:
  static constexpr size_t kMaxSteps = 600;
  struct Step {
    uint64_t calls = 0, good = 0, errors = 0, bytes = 0;
    Histogram latency;
  };

  explicit Timeline(double step_seconds = 0.1) : step_seconds_(step_seconds) {}
  /// A call that ended `t` seconds after the window's begin.
  void Add(double t, const Answer& answer, double latency_us);
  double step_seconds() const { return step_seconds_; }
  const std::vector<Step>& steps() const { return steps_; }

 private:
  double step_seconds_;
  std::vector<Step> steps_;
};

/// What `tilewire-load` keeps of one traced call.
struct Traced {
  uint32_t operation = 0;
  double latency_us = 0;
  client::Reply reply;
};

/// All of a window.
struct Measured {
  explicit Measured(size_t count = 0) : operations(count) {}
  std::vector<CallStats> operations;
  Timeline timeline;
  std::vector<Traced> traces;  ///< a few of each operation
  double seconds = 0;

  /// All operations taken together.
  CallStats total() const;
};

}  // namespace tilewire::load
