// Who is at the other end of a connection.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace tilewire::rpc {

struct Peer {
  /// What counts as one peer: an IPv4 address, the /64 of an IPv6 address (which one customer has whole), the
  /// user of a local process.
  std::string group;
  /// The very connection, as gRPC's ServerContext::peer() names it: "ipv4:127.0.0.1:4000",
  /// "ipv6:[::1]:4000". All of unix sockets are "unix:".
  std::string name;
  bool is_tcp() const { return name != "unix:"; }
  bool own_process = false;  ///< of a unix socket: the other end is this process too
  bool is_probe = false;     ///< OwnDials: takes nobody's place, and is not told of
};

/// Of a connected TCP or unix socket whose other end is at `address`, as accept told.
Peer PeerOf(int fd, const sockaddr_storage& address);

/// What ServerContext::peer() says in the form of Peer::name. Good until this thread asks for another's.
const std::string& PeerName(const std::string& peer);

/// Peer::group of what ServerContext::peer() says; "unix" for all local processes. Good as PeerName() is.
const std::string& PeerGroup(const std::string& peer);

/// Which of `slots` places a table of peers keeps this one in: those of one host differ by how their port
/// ends, and as systems choose them all of one's connections have even ports, or all odd ones.
inline size_t PeerSlot(std::string_view peer, size_t slots) {
  const auto byte = [&](size_t before) {
    return size_t{static_cast<unsigned char>(peer[peer.size() - before])};
  };
  return peer.size() < 3 ? 0 : (100 * byte(3) + 10 * byte(2) + byte(1)) / 2 % slots;
}

}  // namespace tilewire::rpc
