// How far away the other end of a connection is, found out before gRPC has the connection.
//
// The kernel knows the round trip of TCP, but behind a relay that ends TCP only that to the relay. So where
// connections are clear, the server says its first word itself: SETTINGS, which HTTP/2 lets a server send at
// once and has every client acknowledge at once. The time until then is a whole round trip. Nothing is lost
// by it: clients of gRPC wait for SETTINGS before they send a call, which arrives with the acknowledgement.
// What has come stays in the socket (it is only looked at), so gRPC finds the acknowledgement too; it takes
// it for one of its own SETTINGS, which allow a client no less.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewire::rpc {

/// Whether the first SETTINGS are acknowledged.
enum class Acknowledged : uint8_t {
  kNotYet,
  kYes,
  kNeverSeen,  ///< this is no HTTP/2, or so much came before that it is not worth looking for
};

/// Bytes of a connection's beginning that are looked at.
inline constexpr size_t kLookedAtBytes = 16'384;

/// `bytes`: all that came, or its first kLookedAtBytes.
Acknowledged FindAcknowledgement(std::string_view bytes);
/// The same of what waits in a socket, which stays there.
Acknowledged LookForAcknowledgement(int fd);

/// A SETTINGS frame of HTTP/2 with these identifiers and values.
std::string SettingsFrame(const std::vector<std::pair<uint16_t, uint32_t>>& settings);

}  // namespace tilewire::rpc
