// How many calls lie in sockets that nobody has read yet, or wait for the rest of their messages there.
#pragma once

#include <cstdint>

#include "server/base/timing.h"
#include "server/rpc/listener/account.h"

namespace tilewire::rpc {

/// Calls that came, as far as can be told, and that wait for the server to read them: by what they ask for.
struct Unread {
  double small = 0, bulk = 0;

  Unread& operator+=(const Unread& other) {
    small += other.small, bulk += other.bulk;
    return *this;
  }
};

/// Of one connection, what came through it in about the last tenth of a second. Thread-compatible.
class RecentCalls {
 public:
  /// Learns from what came since the last time.
  void Update(TimePoint now, const ConnectionAccount& account);
  /// Calls in so many bytes. Where much lies unread those are in it whose headers came and whose messages did
  /// not: the connection's window is full. Small ones beside them are guessed, by what a call brings, and no
  /// more than came lately, so that one large message among small ones is not taken for many. Bulk ones count
  /// only where as much lay unread the last time, so that who is slow to send, or reads as fast as he is
  /// sent, has none. None where few calls come, or where a stream brings much beside them.
  Unread In(int64_t unread_bytes, const ConnectionAccount& account);

 private:
  double GuessSmall(int64_t unread_bytes) const;

  double calls_ = 0, bytes_ = 0;              ///< a second
  uint64_t calls_then_ = 0, bytes_then_ = 0;  ///< as of the last time
  TimePoint then_{};
  bool much_then_ = false;
};

}  // namespace tilewire::rpc
