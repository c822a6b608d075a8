// What was measured of a case, ready to be reported.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/bench/bench.h"
#include "kernels/bench/meter.h"
#include "kernels/bench/stopping.h"
#include "kernels/figures/statistics.h"

namespace tilewire::bench {

/// A case in one mode.
struct Measurement {
  Mode mode = Mode::kCold;
  Summary seconds;  ///< of one run
  Stop stop = Stop::kNotYet;
  int batch = 1;  ///< Sampler::batch()
};

enum class Outcome : uint8_t {
  kMeasured,
  kSkipped,  ///< cannot run here; `reason` says why
  kFailed,   ///< wrong result or an error; `reason` says which
};
/// "measured", "skipped", "failed".
std::string_view Name(Outcome outcome);

struct Record {
  CaseInfo info;
  Outcome outcome = Outcome::kSkipped;
  std::string reason;
  Check check;
  std::vector<Measurement> measurements;  ///< in order of Mode
  double limit_rate = 0;                  ///< bytes a second of info.limit; 0: none, or not measured

  const Measurement* Find(Mode mode) const;
  /// Cold where it was measured, else hot, else null: what a single figure is taken from.
  const Measurement* Headline() const;
  /// Bytes a second at the median; 0 where the case moves no bytes.
  double Rate(const Measurement& measurement) const;
  /// Rate ÷ limit; 0 where there is none.
  double Share(const Measurement& measurement) const;
};

/// Everything that a report is made from.
struct Report {
  std::string program;  ///< "tilewire_kernel_bench 0.1.0"
  Facts machine;
  Facts settings;                        ///< how it was measured
  std::map<std::string, double> limits;  ///< name → bytes a second
  std::vector<Record> records;           ///< in order of the cases
};

/// Groups of the records in order of appearance.
std::vector<std::string> Groups(const Report& report);
/// Measured, sampled records of a group, as shares of their limits (headline), ascending.
std::vector<double> SampledShares(const Report& report, const std::string& group);

}  // namespace tilewire::bench
