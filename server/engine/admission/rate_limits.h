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

/// What one owner may that is not as for all others; 0: as for them.
struct OwnLimits {
  Rates rates;
  int max_in_flight = 0, queue_length = 0;
  int64_t device_bytes = 0;  ///< of his jobs, those that wait too, and arrays; 0: no bound
};

/// Where a limit is said, for messages: by the operator's rule for this owner, or by a flag for all.
std::string SaidBy(bool own, const char* rule_key, const char* flag);

/// A token bucket for each owner and rate. A bucket holds what a second brings, and at least one call. What
/// is larger than a whole bucket needs a full one, and leaves it that much in debt. Where an owner's rate
/// becomes another, what he has taken stays taken. Thread-safe.
class RateLimits {
 public:
  explicit RateLimits(const Rates& rates) : rates_(rates) {}

  /// Takes a call with that many bytes out of the owner's buckets. RESOURCE_EXHAUSTED `BUSY` where one of
  /// them has too little, and then nothing is taken: field, value and allowed say which, and the retry
  /// pushback when it will have enough, in turn with others who are told so (PlacesInTurn).
  /// `own` rates hold instead of those of all, where he has any.
  Status Take(const std::string& owner, int64_t bytes, TimePoint now, const Rates& own = {});
  /// Owners of whom anything is known: a bucket that is full again is forgotten in time.
  size_t known() const;

 private:
  using Pair = std::array<double, 2>;  ///< of calls and bytes
  struct Buckets {
    Pair levels, per_second;
    TimePoint filled;                ///< when these were the levels
    std::array<uint32_t, 2> told{};  ///< to come again, and have not yet, as far as can be told
  };
  /// What buckets of these rates hold when they are full.
  static Pair Most(const Pair& per_second);
  /// What there is by now, in buckets that are `most` from now on.
  static Pair LevelsAt(const Buckets& buckets, const Pair& most, TimePoint now);
  void ForgetFull(TimePoint now) TILEWIRE_REQUIRES(mutex_);

  const Rates rates_;
  mutable Mutex mutex_;
  std::map<std::string, Buckets> owners_ TILEWIRE_GUARDED_BY(mutex_);
  size_t forget_at_ TILEWIRE_GUARDED_BY(mutex_) = 256;  ///< owners
};

}  // namespace tilewire::engine
