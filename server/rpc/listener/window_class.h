// How much a connection may send unread, by how far away its other end is. What gRPC 1.51 grants is a matter
// of a whole server, so there is a server for each class, and a connection is handed to the one that suits
// it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "server/base/limits.h"
#include "server/base/timing.h"

namespace tilewire::rpc {

enum class WindowClass : uint8_t { kNear, kMiddle, kFar };
inline constexpr int kWindowClasses = 3;
inline constexpr std::array<std::string_view, kWindowClasses> kWindowClassNames{"near", "middle", "far"};

/// From which round trip on a class is worth its memory: until then a narrower window and a message for each
/// round trip are as much as one connection carries.
inline constexpr std::array<Clock::duration, kWindowClasses> kRoundTrips{
    Clock::duration::zero(), std::chrono::microseconds(100), std::chrono::milliseconds(15)};
/// Bytes that the streams of a connection are counted to send unread, together; near ones each. Near ones
/// have a fixed window, --receive-window. To wide ones gRPC's probe grants what the distance takes: 4 MiB
/// where little flows, and twice what is under way where more does, for a connection at full speed from 40 ms
/// away some 16 to 32 MiB. A fixed window is no choice: without its probe gRPC 1.51 never grants a whole
/// connection more than 64 KiB beside the message that is being read.
inline constexpr std::array<int64_t, kWindowClasses> kWideWindowBytes{0, 4 * kMiB, 16 * kMiB};
/// What a place takes: a window, and a message that is being read besides.
constexpr int64_t PlaceBytes(WindowClass of) {
  return of == WindowClass::kNear ? 0 : kWideWindowBytes[static_cast<size_t>(of)] + kMiB;
}

/// What a connection over that round trip needs.
WindowClass NeededFor(Clock::duration round_trip);

/// The places with wide windows: as many as their memory allows, to whoever comes first. Thread-compatible.
class WindowPlaces {
 public:
  using Id = uint64_t;
  /// `bytes` for all of them together.
  explicit WindowPlaces(int64_t bytes) : free_bytes_(bytes) {}

  /// A place of that class for a connection, or of the widest narrower one that there is a place in. Near
  /// ones never run out.
  WindowClass Take(Id id, WindowClass needed);
  /// The connection has ended. No-op where it has no place.
  void Return(Id id);
  int64_t free_bytes() const { return free_bytes_; }

 private:
  int64_t free_bytes_;
  std::unordered_map<Id, WindowClass> taken_;  ///< near ones are not in it
};

}  // namespace tilewire::rpc
