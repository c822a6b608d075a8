// What gRPC may hold for the calls of a server.
#pragma once

#include <cstdint>
#include <string>

#include "server/rpc/transport/allowance.h"

namespace tilewire::rpc {

/// Accounts of a quota of gRPC's. No caller has all of one but of what is read ahead, which calls can do
/// without. Thread-safe.
struct ReceiveAccounts {
  /// `flag` sets the quota.
  explicit ReceiveAccounts(const std::string& flag)
      : streams("streams", flag),
        ahead("messages read ahead", flag),
        unary("waiting calls and replies", flag) {}
  /// What streams may hold of a quota: unary messages are here before anybody can refuse them, so streams
  /// leave them room.
  static constexpr int64_t StreamBytes(int64_t quota) { return quota / 64 * 45; }
  /// Before the first call.
  void SetLimits(int64_t quota) {
    streams.SetLimit(StreamBytes(quota));
    ahead.SetLimit(quota / 64 * 3);  // of its own, so that it takes no stream's place
    unary.SetLimit(quota / 4);
  }

  Allowance streams;  ///< windows, and messages being read
  Allowance ahead;    ///< messages of streams, beside the one that each reads
  Allowance unary;    ///< requests until they are admitted, replies until taken
};

/// How one of gRPC's servers receives.
struct Receiving {
  int64_t window = 0;  ///< bytes of a stream that gRPC may hold unread,
  bool wide = false;   ///< or those that its connection was given (ConnectionAccount::window)
  ReceiveAccounts* accounts = nullptr;
};

}  // namespace tilewire::rpc
