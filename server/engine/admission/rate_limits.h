// How much one caller may ask for in a second.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/base/time_source.h"

namespace tilewire::engine {

/// Each of one owner; 0: no bound.
struct Rates {
  double calls_per_second = 0, bytes_per_second = 0;
};

/// A token bucket for each owner and rate. A bucket holds what a second brings, and at least one call. What
/// is larger than a whole bucket needs a full one, and leaves it that much in debt. Thread-safe.
class RateLimits {
 public:
  explicit RateLimits(const Rates& rates);

  /// Takes a call with that many bytes out of the owner's buckets. RESOURCE_EXHAUSTED `BUSY` where one of
  /// them has too little, and then nothing is taken: field, value and allowed say which, and the retry
  /// pushback when it will have enough, were nothing else taken.
  Status Take(const std::string& owner, int64_t bytes, TimePoint now);
  /// Owners of whom anything is known: a bucket that is full again is forgotten in time.
  size_t known() const;

 private:
  struct Buckets {
    std::array<double, 2> levels;  ///< of calls and bytes
    TimePoint filled;              ///< when these were the levels
  };
  /// What there is by now.
  std::array<double, 2> LevelsAt(const Buckets& buckets, TimePoint now) const;
  void ForgetFull(TimePoint now) TILEWIRE_REQUIRES(mutex_);

  const std::array<double, 2> per_second_, most_;
  mutable Mutex mutex_;
  std::map<std::string, Buckets> owners_ TILEWIRE_GUARDED_BY(mutex_);
  size_t forget_at_ TILEWIRE_GUARDED_BY(mutex_) = 256;  ///< owners
};

}  // namespace tilewire::engine
