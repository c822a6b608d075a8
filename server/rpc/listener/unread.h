// How many calls lie in sockets that nobody has read yet, or wait for the rest of their messages there.
#pragma once

#include <cstdint>
#include <optional>

#include "server/base/timing.h"
#include "server/rpc/listener/account.h"

namespace tilewire::rpc {

/// Calls that came, as far as can be told, and that wait for the server to read them, by Weight.
struct Unread {
  double light = 0, heavy = 0;

  Unread& operator+=(const Unread& other) {
    light += other.light, heavy += other.heavy;
    return *this;
  }
};

/// Of one connection, what came through it in about a tenth of a second, when it was last read.
/// Thread-compatible.
class RecentCalls {
 public:
  /// Learns from what came since the last time; nothing where nothing came because nothing was read.
  void Update(TimePoint now, const ConnectionAccount& account);
  /// Calls in so many bytes. Where much lies unread those are in it whose headers came and whose messages did
  /// not: the connection's window is full. Beside them there are as many as such bytes bring, and no
  /// more than came lately, so that one large message is not taken for many; of light ones none where few
  /// calls come, or where a stream brings much beside them. Heavy ones count only where as much lay unread
  /// the last time, too, so that who is slow to send, or is read as fast as he sends, has none, and then for
  /// 0.2 s, since a socket is empty between a window that was read and the next; of those on their way 8, or
  /// as many as began in 0.1 s, at most. `account` is told where either are counted so: it is behind.
  /// `read_bytes`: what was read of the connection, ever, where MayBeInAMessage: where more comes of that
  /// than of calls, a large message does, and what lies unread is of it.
  Unread In(int64_t unread_bytes, ConnectionAccount* account, int64_t read_bytes = 0);
  /// Much lies unread, no call came since the last time, and those that come are light.
  bool MayBeInAMessage(int64_t unread_bytes) const;

 private:
  /// As many of such as came, `calls` a second in `bytes`, as such bytes bring, and no more than come in
  /// `most_seconds`.
  double Guess(int64_t unread_bytes, double calls, double bytes, double most_seconds) const;
  double GuessLight(int64_t unread_bytes) const;

  double calls_ = 0, requests_ = 0, bytes_ = 0, light_bytes_ = 0;
  uint64_t calls_then_ = 0, requests_then_ = 0, bytes_then_ = 0, carried_then_ = 0;  ///< as of the last time
  TimePoint then_{}, came_{};
  bool much_then_ = false, nothing_came_ = false, heavy_ = false;
  bool lies_ = false;                 ///< much lay unread the last time, and was not of a large message
  std::optional<int64_t> read_then_;  ///< since nothing came
};

}  // namespace tilewire::rpc
