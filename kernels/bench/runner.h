// Runs cases one after the other: limits first, each checked before it is timed.
#pragma once

#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "kernels/bench/bench.h"
#include "kernels/bench/meter.h"
#include "kernels/bench/record.h"
#include "kernels/bench/stopping.h"

namespace tilewire::bench {

struct RunSettings {
  StoppingRule rule;
  std::vector<Mode> modes = AllModes();
  /// Mode::kCompletion is measured only where a hot run's median is shorter than this.
  double completion_below_seconds = 100e-6;
};

/// Meters by place; a null one skips the cases of that place, with `missing` as the reason.
struct Meters {
  Meter* host = nullptr;
  Meter* device = nullptr;
  std::string missing;
};

/// Indices of the cases that match, and of those that define a limit which a match is held against,
/// ascending.
std::vector<size_t> Select(const std::vector<Case>& cases, const std::regex& filter);

/// Checks and times one case. `limit_rate` stays 0.
Record RunCase(const Case& one, Meter& meter, const RunSettings& settings);

/// Runs the chosen cases; those that define limits come first, the records are in order of `chosen`. `done`
/// is called after each. `limits` receives bytes a second by name.
std::vector<Record> RunCases(const std::vector<Case>& cases, const std::vector<size_t>& chosen,
                             const Meters& meters, const RunSettings& settings,
                             const std::function<void(const Record&)>& done,
                             std::map<std::string, double>* limits);

}  // namespace tilewire::bench
