// How much memory gRPC may bind for messages that come in.
#pragma once

#include <cstdint>

#include "server/base/limits.h"

namespace tilewire::rpc {

/// `--receive-quota`: with the rest of an idle server, and what the allocator keeps, it stays under the 256
/// MiB that a server may take beside its budgets.
inline constexpr int64_t kDefaultReceiveQuotaBytes = 192 * kMiB;
/// `--receive-window`.
inline constexpr int64_t kDefaultReceiveWindowBytes = 128 * kKiB;

/// Bytes.
struct ReceiveLimits {
  int64_t quota = kDefaultReceiveQuotaBytes;  ///< over all connections; beyond it gRPC ends streams at random
  /// Of a stream that nobody reads; 0: what gRPC's probe estimates.
  int64_t window = kDefaultReceiveWindowBytes;
};

}  // namespace tilewire::rpc
