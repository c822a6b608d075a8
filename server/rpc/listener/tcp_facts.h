// What the kernel counts of a TCP connection.
#pragma once

#include <cstdint>

#include "server/base/timing.h"

namespace tilewire::rpc {

/// Bytes that came in, and that went out and were acknowledged.
struct TcpBytes {
  uint64_t received = 0, sent = 0;
};
/// Zero of unix sockets, where nobody counts.
TcpBytes BytesOf(int fd);
/// Bytes that came in and that nobody has read. Zero where nobody knows.
int64_t UnreadBytes(int fd);
/// How long ago the last of them came, to some milliseconds. Zero where it is not known.
Clock::duration SinceReceived(int fd);
/// The smoothed round trip, of the handshake at first. Zero where it is not known.
Clock::duration TcpRoundTrip(int fd);

}  // namespace tilewire::rpc
