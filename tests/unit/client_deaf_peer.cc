// DeafPeer: just enough HTTP/2, by hand, to make a client send what nobody will read.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/unit/client_fake_server.h"

namespace tilewire::client::testing {
namespace {

std::string Frame(char type, char flags, uint32_t stream, const std::string& payload) {
  const auto size = payload.size();
  std::string out = {static_cast<char>(size >> 16), static_cast<char>(size >> 8), static_cast<char>(size),
                     type, flags};
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(stream >> shift);
  return out + payload;
}

bool ReadAll(int fd, char* out, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::recv(fd, out, bytes, 0);
    if (got <= 0) return false;
    out += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

void Send(int fd, const std::string& bytes) {
  (void)!::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

/// Reads up to the first HEADERS frame, then answers Opened and returns; the socket stays open and unread.
void OpenAndFallSilent(int fd) {
  constexpr char kData = 0, kHeaders = 1, kSettings = 4, kWindowUpdate = 8, kAck = 1, kEndHeaders = 4;
  char preface[24];
  if (!ReadAll(fd, preface, sizeof(preface))) return;
  // Initial window 2^30 for streams (setting 4) and for the connection.
  Send(fd, Frame(kSettings, 0, 0, std::string("\x00\x04\x40\x00\x00\x00", 6)));
  Send(fd, Frame(kWindowUpdate, 0, 0, std::string("\x40\x00\x00\x00", 4)));
  for (;;) {
    unsigned char head[9];
    if (!ReadAll(fd, reinterpret_cast<char*>(head), sizeof(head))) return;
    std::string payload(size_t{head[0]} << 16 | size_t{head[1]} << 8 | head[2], '\0');
    if (!ReadAll(fd, payload.data(), payload.size())) return;
    if (head[3] == kSettings && !(head[4] & kAck)) Send(fd, Frame(kSettings, kAck, 0, ""));
    if (head[3] == kHeaders) break;
  }
  // ":status: 200" and "content-type: application/grpc", then ExecuteResponse{opened{}} behind gRPC's 5-byte
  // prefix.
  Send(fd, Frame(kHeaders, kEndHeaders, 1, std::string("\x88\x5f\x10", 3) + "application/grpc"));
  Send(fd, Frame(kData, 0, 1, std::string("\x00\x00\x00\x00\x02\x0a\x00", 7)));
}

}  // namespace

class DeafPeer::Impl {
 public:
  Impl() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 8) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      std::abort();
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (int fd; (fd = ::accept(listener_, nullptr, nullptr)) >= 0;) {
        connections_.push_back(fd);
        OpenAndFallSilent(fd);
      }
    });
  }
  ~Impl() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    for (const int fd : connections_) ::close(fd);
  }
  int port() const { return port_; }

 private:
  int listener_ = -1, port_ = 0;
  std::vector<int> connections_;  ///< of the thread until it has ended
  std::thread thread_;
};

DeafPeer::DeafPeer() : impl_(std::make_unique<Impl>()) {}
DeafPeer::~DeafPeer() = default;
std::string DeafPeer::address() const {
  return "127.0.0.1:" + std::to_string(impl_->port());
}

}  // namespace tilewire::client::testing
