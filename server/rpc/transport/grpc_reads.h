// What gRPC 1.51 reads of connections, seen and bounded. It has no means for that: but its shared library
// calls its parser of headers, and its control of flow, by names that a program may have functions of its own
// for. Those of this program look, and go on to the library's, or tell gRPC that the connection is broken.
// That is so of 1.51 alone, which is asked for; linked into the program gRPC would have these names twice.
#pragma once

#include <cstdint>

namespace tilewire::rpc {

/// What gRPC takes of one call, of names and values, and 32 for each.
inline constexpr uint32_t kMostMetadataBytes = 8 << 10;

/// Whether this gRPC is so seen: all servers and clients of this process.
bool SeesReads();

/// How much of messages that have not come whole may be here, of connections from near by and of those from
/// afar, for all servers of this process: MessagesOnWay. Thread-safe.
void LimitMessagesOnWay(int64_t near_bytes, int64_t wide_bytes);
/// Whether these are seen, too.
bool SeesMessages();

/// Connections that were ended so, and messages, with their calls, since the process began.
struct ReadsRefused {
  uint64_t headers = 0;   ///< UnfinishedHeaders
  uint64_t streams = 0;   ///< ConnectionAccount::BeginStream
  uint64_t messages = 0;  ///< MessagesOnWay
};
/// Thread-safe.
ReadsRefused RefusedReads();
uint64_t RefusedMessages();

}  // namespace tilewire::rpc
