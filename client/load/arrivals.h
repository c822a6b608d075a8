// When the calls of an open loop are due.
#pragma once

#include <cstdint>

#include "client/load/random.h"

namespace tilewire::load {

/// Spacing of an open loop: equal, or exponential as of many independent callers.
enum class Arrivals : uint8_t { kConstant, kPoisson };

/// Due times in seconds from 0, ascending, `rate` (> 0) a second on average. The same for the same seed,
/// whatever happens to the calls. Not thread-safe.
class Schedule {
 public:
  Schedule(Arrivals arrivals, double rate, uint64_t seed) : arrivals_(arrivals), rate_(rate), random_(seed) {}

  double Next() {
    // Constant ones are multiplied, not added up: no error gathers over millions of them.
    if (arrivals_ == Arrivals::kConstant) return static_cast<double>(count_++) / rate_;
    return at_ += random_.Exponential() / rate_;
  }

 private:
  const Arrivals arrivals_;
  const double rate_;
  Random random_;
  uint64_t count_ = 0;
  double at_ = 0;
};

}  // namespace tilewire::load
