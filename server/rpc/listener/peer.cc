#include "server/rpc/listener/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "server/base/per_thread.h"

namespace tilewire::rpc {
namespace {

std::string AddressText(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(family, address, text.data(), text.size()) ? text.data() : "?";
}

Peer V4(const in_addr& address, in_port_t port) {
  const std::string host = AddressText(AF_INET, &address);
  return {.group = host, .name = "ipv4:" + host + ":" + std::to_string(ntohs(port))};
}

Peer V6(const in6_addr& address, in_port_t port) {
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    in_addr inner{};
    std::memcpy(&inner, address.s6_addr + 12, sizeof inner);
    return V4(inner, port);
  }
  in6_addr network = address;
  std::memset(network.s6_addr + 8, 0, 8);
  return {.group = AddressText(AF_INET6, &network) + "/64",
          .name = "ipv6:[" + AddressText(AF_INET6, &address) + "]:" + std::to_string(ntohs(port))};
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

Peer PeerOf(int fd, const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return V4(v4.sin_addr, v4.sin_port);
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    return V6(v6.sin6_addr, v6.sin6_port);
  }
  Peer peer{.group = "unix", .name = "unix:"};
  ucred who{};
  socklen_t bytes = sizeof who;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0) {
    peer.group = "uid:" + std::to_string(who.uid);
    peer.own_process = who.pid == getpid();
  }
  return peer;
}

namespace {

std::string ReadName(const std::string& peer) {
  std::string name;
  for (size_t i = 0; i < peer.size(); ++i) {
    if (peer[i] == '%' && i + 2 < peer.size() && HexDigit(peer[i + 1]) >= 0 && HexDigit(peer[i + 2]) >= 0) {
      name += static_cast<char>(HexDigit(peer[i + 1]) * 16 + HexDigit(peer[i + 2]));
      i += 2;
    } else {
      name += peer[i];
    }
  }
  // The zone of a link-local address ("%2", "%eth0"): no two connections differ by it alone.
  const size_t zone = name.find('%'), end = name.rfind(']');
  if (zone != name.npos && end != name.npos && zone < end) name.erase(zone, end - zone);
  return name;
}

std::string GroupOf(const std::string& name) {
  const size_t colon = name.rfind(':');
  in_addr v4{};
  in6_addr v6{};
  if (name.starts_with("ipv4:") && inet_pton(AF_INET, name.substr(5, colon - 5).c_str(), &v4) == 1)
    return V4(v4, 0).group;
  const size_t end = name.rfind(']');
  if (name.starts_with("ipv6:[") && end != name.npos &&
      inet_pton(AF_INET6, name.substr(6, end - 6).c_str(), &v6) == 1)
    return V6(v6, 0).group;
  return name.substr(0, name.find(':'));
}

/// What was read of a peer.
struct Parts {
  std::string peer, name, group;
};

/// Calls mostly come where some of the last ones came.
const Parts& PartsOf(const std::string& peer) {
  auto& known = PerThread<std::array<Parts, 64>>();
  Parts& parts = known[PeerSlot(peer, known.size())];
  if (parts.peer != peer || peer.empty()) {
    std::string name = ReadName(peer), group = GroupOf(name);
    parts = {peer, std::move(name), std::move(group)};
  }
  return parts;
}

}  // namespace

const std::string& PeerName(const std::string& peer) {
  return PartsOf(peer).name;
}

const std::string& PeerGroup(const std::string& peer) {
  return PartsOf(peer).group;
}

}  // namespace tilewire::rpc
