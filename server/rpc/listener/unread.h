// How many small calls lie in sockets that nobody has read yet.
#pragma once

#include <cstdint>

#include "server/base/timing.h"
#include "server/rpc/listener/account.h"

namespace tilewire::rpc {

/// Of one connection, what came through it in about the last tenth of a second. Thread-compatible.
class RecentCalls {
 public:
  /// Learns from what came since the last time.
  void Update(TimePoint now, const ConnectionAccount& account);
  /// Small calls in so many bytes, a guess: by what a call brings, and no more than came lately, so that one
  /// large message among small ones is not taken for many. 0 where few calls come, or large ones, or where a
  /// stream brings much beside them.
  double In(int64_t unread_bytes) const;

 private:
  double calls_ = 0, bytes_ = 0;              ///< a second
  uint64_t calls_then_ = 0, bytes_then_ = 0;  ///< as of the last time
  TimePoint then_{};
};

}  // namespace tilewire::rpc
