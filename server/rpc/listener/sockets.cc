#include "server/rpc/listener/sockets.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

namespace tilewire::rpc {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr int kSocketType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

/// A port that was picked for one family may be taken in the other; then another is picked, so often.
constexpr int kPicks = 16;

Status Cannot(const std::string& address, const std::string& why) {
  return Status(Code::kUnavailable, "CANNOT_LISTEN", "cannot listen on " + address + ": " + why);
}

std::string ErrnoText(int error) {
  return error == EADDRINUSE ? "it is taken" : std::strerror(error);
}

/// An address of a host.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  bool is_v6() const { return storage.ss_family == AF_INET6; }
  in_port_t& port() {
    return is_v6() ? reinterpret_cast<sockaddr_in6&>(storage).sin6_port
                   : reinterpret_cast<sockaddr_in&>(storage).sin_port;
  }
  bool is_wildcard() const {
    if (is_v6()) return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr);
    return reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr == htonl(INADDR_ANY);
  }
};

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

/// The addresses of a host and a port, each once; "" where they are told, else what is wrong.
std::string Resolve(const std::string& host, const std::string& port, std::vector<SocketAddress>* addresses) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  // "localhost" is this machine's loopback, also where no file and no server of names says so (RFC
  // 6761, 6.3).
  const bool loopback = host == "localhost";
  hints.ai_flags = AI_NUMERICSERV | (loopback ? 0 : AI_PASSIVE);
  addrinfo* list = nullptr;
  const int error = getaddrinfo(loopback ? nullptr : host.c_str(), port.c_str(), &hints, &list);
  if (error != 0) return gai_strerror(error);
  const std::unique_ptr<addrinfo, FreeAddresses> owner(list);
  for (; list != nullptr; list = list->ai_next) {
    if (list->ai_family != AF_INET && list->ai_family != AF_INET6) continue;
    SocketAddress one{.bytes = list->ai_addrlen};
    std::memcpy(&one.storage, list->ai_addr, list->ai_addrlen);
    addresses->push_back(one);
  }
  return "";
}

/// Of "host:port" and "[v6]:port".
std::string HostOf(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

/// A wildcard of both families, to be tried before the one of IPv4 alone.
SocketAddress AnyHost(in_port_t port) {
  SocketAddress any{.bytes = sizeof(sockaddr_in6)};
  auto& v6 = reinterpret_cast<sockaddr_in6&>(any.storage);
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_any;
  v6.sin6_port = port;
  return any;
}

/// An errno where it does not listen.
struct Opened {
  FileDescriptor socket;
  int error = 0;
};

Opened Fails() {
  return {.error = errno};
}

Opened OpenTcp(const SocketAddress& at) {
  FileDescriptor fd(socket(at.storage.ss_family, kSocketType, 0));
  if (!fd) return Fails();
  const int on = 1, v6_only = at.is_wildcard() ? 0 : 1;
  // Connections of a server that has just ended do not keep the port; one that listens does.
  if (setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return Fails();
  if (at.is_v6() && setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only) != 0)
    return Fails();
  if (bind(fd.get(), at.get(), at.bytes) != 0 || listen(fd.get(), SOMAXCONN) != 0) return Fails();
  return {.socket = std::move(fd)};
}

in_port_t PortOf(int fd) {
  SocketAddress bound{.bytes = sizeof(sockaddr_storage)};
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound.storage), &bound.bytes) != 0) return 0;
  return bound.port();
}

bool NotOnThisMachine(int error) {
  return error == EADDRNOTAVAIL || error == EAFNOSUPPORT || error == EPROTONOSUPPORT;
}

std::string TextOf(SocketAddress at) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* const host = at.is_v6()
                               ? static_cast<void*>(&reinterpret_cast<sockaddr_in6&>(at.storage).sin6_addr)
                               : &reinterpret_cast<sockaddr_in&>(at.storage).sin_addr;
  inet_ntop(at.storage.ss_family, host, text.data(), text.size());
  return at.is_v6() ? "[" + std::string(text.data()) + "]" : text.data();
}

/// What listens, and what does not though this machine has it: "localhost" often means more than there is.
struct OpenedAll {
  std::vector<FileDescriptor> sockets;
  std::string left_out;
  int error = 0;  ///< of the last that does not listen
};

/// All of them on one port, the first's where it was picked.
OpenedAll OpenAll(std::vector<SocketAddress> addresses) {
  OpenedAll all;
  for (SocketAddress& at : addresses) {
    if (at.port() == 0 && !all.sockets.empty()) at.port() = PortOf(all.sockets.front().get());
    Opened one = OpenTcp(at);
    if (one.socket) {
      all.sockets.push_back(std::move(one.socket));
      continue;
    }
    if (all.error == 0 || !NotOnThisMachine(one.error)) all.error = one.error;
    if (NotOnThisMachine(one.error)) continue;
    all.left_out += (all.left_out.empty() ? "" : ", ") + TextOf(at) + ": " + ErrnoText(one.error);
  }
  return all;
}

/// Whether somebody answers there: an errno, 0 where somebody does.
int Dial(const sockaddr_un& at) {
  const FileDescriptor fd(socket(AF_UNIX, kSocketType, 0));
  if (!fd) return errno;
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return 0;
  return errno == EAGAIN ? 0 : errno;  // so busy that its queue is full
}

}  // namespace

Status ListeningSockets::ListenOnTcp(const std::vector<std::string>& hosts) {
  const std::string asked = address_.substr(address_.rfind(':') + 1);
  std::vector<SocketAddress> addresses;
  for (const std::string& host : hosts)
    if (const std::string why = Resolve(host, asked, &addresses); !why.empty()) return Cannot(address_, why);
  const bool picks = !addresses.empty() && addresses.front().port() == 0;
  for (SocketAddress& at : addresses) {
    if (!at.is_wildcard()) continue;
    const in_port_t port = at.port();
    addresses = {AnyHost(port)};
    if (const Opened any = OpenTcp(addresses.front()); NotOnThisMachine(any.error)) {
      SocketAddress v4{.bytes = sizeof(sockaddr_in)};
      v4.storage.ss_family = AF_INET;
      v4.port() = port;
      addresses = {v4};
    }
    break;
  }
  OpenedAll all{.error = EADDRNOTAVAIL};
  for (int i = 0; i < (picks ? kPicks : 1); ++i) {
    all = OpenAll(addresses);
    if (all.left_out.empty()) break;
  }
  if (all.sockets.empty()) return Cannot(address_, ErrnoText(all.error));
  sockets_ = std::move(all.sockets);
  left_out_ = std::move(all.left_out);
  address_.replace(address_.rfind(':') + 1, std::string::npos,
                   std::to_string(ntohs(PortOf(sockets_.front().get()))));
  return {};
}

Status ListeningSockets::ListenOnUnix(const std::string& path) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof at.sun_path) return Cannot(address_, "the path is too long");
  std::memcpy(at.sun_path, path.data(), path.size());
  struct stat file {};
  if (lstat(path.c_str(), &file) == 0 && S_ISSOCK(file.st_mode)) {
    const int error = Dial(at);
    if (error == 0) return Cannot(address_, "another server answers there");
    if (error != ECONNREFUSED) return Cannot(address_, std::string("it exists: ") + std::strerror(error));
    if (unlink(path.c_str()) != 0) return Cannot(address_, ErrnoText(errno));
  }
  FileDescriptor fd(socket(AF_UNIX, kSocketType, 0));
  if (!fd || bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
    return Cannot(address_, ErrnoText(errno));
  path_ = path;
  if (lstat(path.c_str(), &file) == 0) device_ = file.st_dev, inode_ = file.st_ino;
  if (listen(fd.get(), SOMAXCONN) != 0) return Cannot(address_, ErrnoText(errno));
  sockets_.push_back(std::move(fd));
  return {};
}

ListeningSockets::~ListeningSockets() {
  struct stat file {};
  if (path_.empty() || lstat(path_.c_str(), &file) != 0) return;
  if (file.st_dev == device_ && file.st_ino == inode_) unlink(path_.c_str());  // else it is another's by now
}

Result<ListeningSockets> ListenOn(const std::string& address, const std::vector<std::string>& hosts) {
  ListeningSockets listening(address);
  TILEWIRE_RETURN_IF_ERROR(address.starts_with(kUnix)
                               ? listening.ListenOnUnix(address.substr(kUnix.size()))
                               : listening.ListenOnTcp(hosts.empty() ? std::vector{HostOf(address)} : hosts));
  return listening;
}

}  // namespace tilewire::rpc
