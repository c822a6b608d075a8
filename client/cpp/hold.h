// What a server that is behind asked of its clients: to hold back for a while.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "client/cpp/call_spec.h"
#include "kernels/array/status.h"

namespace tilewire::client {

/// Where calls come faster than a server can read them it cannot even refuse them: a call that is refused
/// costs it hardly less than one that is served. So it asks one of a connection's calls (RESOURCE_EXHAUSTED
/// `BUSY`, field kSmallCallsWait or kBulkCallsWait), and all others like it are not sent for as long as that
/// one was asked to wait. One object for the calls of a client; thread-safe.
class Hold {
 public:
  using Clock = std::chrono::steady_clock;
  /// Operands and results of a call that counts as small, by the contract.
  static constexpr int64_t kSmallBytes = 256 << 10;

  /// What the server would say to that call, had it been sent: OK where nobody was asked to hold it back.
  Status Refuse(const CallSpec& spec, Clock::time_point now) const;
  /// Remembers what the server asked, if it did: how a call of this client ended.
  void Learn(const Status& ended, Clock::time_point now);

 private:
  using Until = std::atomic<Clock::time_point>;
  std::array<Until, 2> until_{Clock::time_point(), Clock::time_point()};  ///< [whether bulk]
};

}  // namespace tilewire::client
