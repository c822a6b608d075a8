// How much memory gRPC may bind for messages that come in.
#pragma once

#include <algorithm>
#include <cstdint>

#include "server/base/limits.h"

namespace tilewire::rpc {

/// `--receive-quota`: with the rest of an idle server, and what the allocator keeps, it stays under the 256
/// MiB that a server may take beside its budgets.
inline constexpr int64_t kDefaultReceiveQuotaBytes = 192 * kMiB;
/// gRPC's own limit lies above ours (kMaxUnaryBytes, kMaxMessageBytes), so that ours can say what to do
/// instead. Not far above: gRPC's health and reflection services copy whatever they are sent. gRPC 1.51 looks
/// at a message's size only when all of it is here: MessagesOnWay does when it begins.
inline constexpr int64_t kTransportMessageBytes = 8 * kMiB;
static_assert(kTransportMessageBytes > kMaxMessageBytes && kTransportMessageBytes > kMaxUnaryBytes);
/// `--receive-window`.
inline constexpr int64_t kDefaultReceiveWindowBytes = 128 * kKiB;

/// What may be here of messages that have not come whole: as much as streams may have of a quota, so that
/// whoever keeps to that, alone at his address, is hardly refused for this, and less than gRPC has, which
/// ends any of them beyond.
constexpr int64_t MessagesOnWayBytes(int64_t quota) {
  return quota / 4 * 3;
}

/// Bytes.
struct ReceiveLimits {
  int64_t quota = kDefaultReceiveQuotaBytes;  ///< over all connections; beyond it gRPC ends streams at random
  /// Of a stream that nobody reads; 0: what gRPC's probe estimates.
  int64_t window = kDefaultReceiveWindowBytes;
  /// Of connections from afar, for wide windows, beside the quota; 0: all connections have the same window.
  int64_t distance_bytes = 0;
};

/// The same of connections from afar: the smallest of their windows have room for twice as much of messages,
/// all others for less than this.
constexpr int64_t WideMessagesOnWayBytes(const ReceiveLimits& limits) {
  return std::min(limits.distance_bytes, std::max(limits.quota, limits.distance_bytes / 3));
}

}  // namespace tilewire::rpc
