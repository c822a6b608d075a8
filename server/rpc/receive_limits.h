// How much memory gRPC may bind for messages that come in.
#pragma once

#include <cstdint>

#include "server/base/limits.h"

namespace tilewire::rpc {

/// Bytes.
struct ReceiveLimits {
  int64_t quota = kDefaultReceiveQuotaBytes;  ///< over all connections; beyond it gRPC ends streams at random
  /// Of a stream that nobody reads; 0: what gRPC's probe estimates.
  int64_t window = kDefaultReceiveWindowBytes;
};

}  // namespace tilewire::rpc
