#include "server/rpc/listener/tcp_facts.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>

namespace tilewire::rpc {
namespace {

/// How much of `info` the kernel knows.
socklen_t Ask(int fd, tcp_info* info) {
  socklen_t bytes = sizeof *info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &bytes) == 0 ? bytes : 0;
}

}  // namespace

TcpBytes BytesOf(int fd) {
  tcp_info info{};
  static_assert(offsetof(tcp_info, tcpi_bytes_acked) < offsetof(tcp_info, tcpi_bytes_received));
  const bool known =
      Ask(fd, &info) >= offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received;
  if (!known) return {};
  return {.received = info.tcpi_bytes_received, .sent = info.tcpi_bytes_acked};
}

int64_t UnreadBytes(int fd) {
  int bytes = 0;
  return ioctl(fd, FIONREAD, &bytes) == 0 ? bytes : 0;
}

Clock::duration SinceReceived(int fd) {
  tcp_info info{};
  const bool known =
      Ask(fd, &info) >= offsetof(tcp_info, tcpi_last_data_recv) + sizeof info.tcpi_last_data_recv;
  return std::chrono::milliseconds(known ? info.tcpi_last_data_recv : 0);
}

Clock::duration TcpRoundTrip(int fd) {
  tcp_info info{};
  const bool known = Ask(fd, &info) >= offsetof(tcp_info, tcpi_rtt) + sizeof info.tcpi_rtt;
  return std::chrono::microseconds(known ? info.tcpi_rtt : 0);
}

}  // namespace tilewire::rpc
