// Many calls that fail alike leave a few lines and a count: who floods the server does not flood its log.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "server/base/mutex.h"
#include "server/base/time_source.h"
#include "server/base/timer.h"
#include "server/rpc/calls/observer.h"

namespace tilewire::ops {

/// What failed calls have in common that are folded into one line.
struct FailureKind {
  std::string caller, method, status, reason;
  auto operator<=>(const FailureKind&) const = default;
};

/// Thread-safe. Counts by seconds that begin with a failure.
class FailureFold {
 public:
  static constexpr int kLines = 20;         ///< of one kind in a second; what comes after them is counted
  static constexpr size_t kMostKinds = 64;  ///< in a second; further ones are one kind, without names

  /// `tell` gets every kind of which calls were folded and their number, when the second is over: on a
  /// thread of its own, or in the destructor.
  using Tell = std::function<void(const FailureKind&, uint64_t folded)>;
  explicit FailureFold(Tell tell, TimeSource* time = SteadyTime());
  ~FailureFold();
  FailureFold(const FailureFold&) = delete;
  FailureFold& operator=(const FailureFold&) = delete;

  /// Whether this failed call gets a line of its own; else it is counted.
  bool Admit(const rpc::CallRecord& record);
  /// The same of whatever else comes by the thousand.
  bool Admit(FailureKind kind);

 private:
  /// The second is over.
  void Settle();

  const Tell tell_;
  Mutex mutex_;  ///< before the timer's
  std::map<FailureKind, uint64_t> seen_ TILEWIRE_GUARDED_BY(mutex_);
  Timer timer_;  ///< last: its thread calls Settle
};

}  // namespace tilewire::ops
