// How much a connection may send unread, by how far away its other end is and by what memory there is. What
// near ones may send is a matter of a whole server of gRPC's, so far ones have a server of their own, and a
// window for each connection.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "server/base/limits.h"
#include "server/base/timing.h"

namespace tilewire::rpc {

/// Windows as they are told of.
enum class WindowClass : uint8_t {
  kNear,    ///< --receive-window for each stream
  kMiddle,  ///< wide, below kFarWindowBytes
  kFar,
};
inline constexpr int kWindowClasses = 3;
inline constexpr std::array<std::string_view, kWindowClasses> kWindowClassNames{"near", "middle", "far"};

/// From this round trip on a wide window is worth its memory: until then a narrow one and a message for each
/// round trip are as much as one connection carries.
inline constexpr std::chrono::microseconds kWideFrom{100};
/// Wide windows, bytes: enough for kWideRate over the round trip, in steps of the least, to the most. A
/// stream may send that much unread, and a message that is being read besides. No more than is needed: a
/// server that is behind reads all of it before it can answer, connection by connection.
inline constexpr int64_t kLeastWideBytes = kMiB / 2, kMostWideBytes = 64 * kMiB;
/// Where memory is short those who need more have this, or a near one.
inline constexpr int64_t kLeastFarBytes = 4 * kMiB;
/// Bytes a second that a connection is to carry, more than twice what gRPC 1.51 gets out of one from 10 ms
/// away: a window is granted anew only when part of it was read. With 1.2 GB/s one had 81 to 91% of what
/// windows without bounds carry.
inline constexpr double kWideRate = 2400e6;
inline constexpr int64_t kFarWindowBytes = 16 * kMiB;
/// Of all connections whose window cannot be told to gRPC one by one: those over TLS.
inline constexpr int64_t kSealedWideBytes = 16 * kMiB;

/// The window that a connection over that round trip needs; 0: a near one.
int64_t WindowNeeded(Clock::duration round_trip);
WindowClass ClassOf(int64_t window);
/// What a place takes: a window, and a message that is being read besides.
constexpr int64_t PlaceBytes(int64_t window) {
  return window == 0 ? 0 : window + kMiB;
}

/// The places with wide windows: as many as their memory allows, to whoever comes first. Thread-compatible.
class WindowPlaces {
 public:
  using Id = uint64_t;
  /// `bytes` for all of them together.
  explicit WindowPlaces(int64_t bytes) : free_bytes_(bytes) {}

  /// A window of `needed` bytes for a connection, or as much of it as there is: halves, but no less than
  /// `least` where more is needed; else 0, a near one. More than `least` only out of plenty, so that those
  /// who come later find something too.
  int64_t Take(Id id, int64_t needed, int64_t least = kLeastFarBytes);
  /// The connection has ended. No-op where it has no place.
  void Return(Id id);
  int64_t free_bytes() const { return free_bytes_; }

 private:
  int64_t free_bytes_;
  std::unordered_map<Id, int64_t> taken_;  ///< windows; near ones are not in it
};

}  // namespace tilewire::rpc
