// How many connections there may be, and how long one may do nothing.
#pragma once

#include <chrono>
#include <cstdint>

namespace tilewire::rpc {

struct ConnectionLimits {
  int most = 0;                   ///< at once; 0: what descriptors allow, kMostByDefault at most
  int most_per_peer = 0;          ///< of one peer; 0: half of them all
  double idle_seconds = 300;      ///< without a call until a connection is closed
  double handshake_seconds = 10;  ///< until a client must have begun HTTP/2
  /// Until a client that has not acknowledged the server's SETTINGS is as far as TCP says: several of the
  /// longest round trips that anything is promised for.
  std::chrono::milliseconds acknowledge_within{400};
  int most_failed_calls = 10'000;  ///< of one connection, where those of ten seconds ago count half
  int64_t memory_bytes = 0;        ///< resident memory from which connections are shed; 0: what cgroups say
};

/// What more descriptors than anybody needs allow by default.
inline constexpr int kMostConnectionsByDefault = 10'000;

/// The limit of open files of this process.
uint64_t OpenFilesLimit();

/// What connections leave of `open_files` to all else: regions, scrapes, the log, libraries.
uint64_t DescriptorReserve(uint64_t open_files);

/// With numbers for what was left to us. A connection takes two descriptors, so `most` is never more than
/// descriptors allow.
ConnectionLimits WithDefaults(ConnectionLimits limits, uint64_t open_files);

}  // namespace tilewire::rpc
