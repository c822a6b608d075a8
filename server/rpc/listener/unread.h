// How many calls lie in sockets that nobody has read yet.
#pragma once

#include <cstdint>

#include "server/rpc/listener/account.h"

namespace tilewire::rpc {

/// Of one connection: by what its calls brought lately. Thread-compatible.
class MeanCall {
 public:
  /// Learns from the calls since the last time.
  void Update(const ConnectionAccount& account);
  /// Bytes that a call brings, headers included; 0 where none has come yet.
  double bytes() const { return bytes_; }
  /// Calls in so many bytes; a guess.
  double CallsIn(int64_t unread_bytes) const;

 private:
  double bytes_ = 0;
  uint64_t calls_ = 0, messages_ = 0;  ///< as of the last time
};

/// Calls that came and that nobody has read. A part of what a connection brings that carries streams, too, is
/// none, and few calls are found in it: its calls bring much.
struct UnreadCalls {
  double small = 0, bulk = 0;  ///< by what calls of their connection bring: kSmallJobBytes and more are bulk
};

}  // namespace tilewire::rpc
