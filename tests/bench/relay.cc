#include "tests/bench/relay.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

namespace tilewire::bench {
namespace {

constexpr size_t kReadBytes = 256 << 10;
/// More than any line of ours has under way: a relay that reads no more would be a window of its own.
constexpr size_t kMostHeldBytes = size_t{256} << 20;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void AtOnce(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

rpc::FileDescriptor Dial(const std::string& target, Handshake handshake) {
  const size_t colon = target.rfind(':');
  sockaddr_in address = Loopback(std::stoi(target.substr(colon + 1)));
  const std::string host = target.substr(0, colon);
  if (host != "localhost") inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  rpc::FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int at_once = handshake == Handshake::kAtOnce ? 1 : 0;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_QUICKACK, &at_once, sizeof at_once);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  AtOnce(fd.get());
  return fd;
}

}  // namespace

Relay::Relay(const std::string& target, std::chrono::microseconds one_way, int64_t bytes_per_second,
             Handshake handshake)
    : target_(target),
      one_way_(one_way),
      bytes_per_second_(bytes_per_second),
      handshake_(handshake),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      stop_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      buffer_(kReadBytes) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      listen(listener_.get(), SOMAXCONN) != 0 || !stop_)
    throw std::runtime_error("the relay cannot listen");
  address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  thread_ = std::thread([this] { Run(); });
}

Relay::~Relay() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void Relay::Accept() {
  rpc::FileDescriptor client(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!client) return;
  rpc::FileDescriptor server = Dial(target_, handshake_);
  if (!server) return;
  AtOnce(client.get());
  Connection& made = all_.emplace_back();
  made.client = std::move(client);
  made.server = std::move(server);
  made.up = {.from = made.client.get(), .to = made.server.get()};
  made.down = {.from = made.server.get(), .to = made.client.get()};
  connections_.fetch_add(1);
}

void Relay::Read(Pipe* pipe) {
  if (pipe->ended || pipe->held_bytes >= kMostHeldBytes) return;
  const ssize_t count = recv(pipe->from, buffer_.data(), buffer_.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  pipe->ended = count <= 0;
  if (pipe->ended) return;
  const auto now = Clock::now();
  pipe->line_free = std::max(pipe->line_free, now);
  if (bytes_per_second_ > 0)
    pipe->line_free += std::chrono::nanoseconds(count * 1'000'000'000 / bytes_per_second_);
  pipe->held.push_back({pipe->line_free + one_way_, {buffer_.begin(), buffer_.begin() + count}});
  pipe->held_bytes += static_cast<size_t>(count);
}

void Relay::Write(Pipe* pipe) {
  while (!pipe->held.empty() && pipe->held.front().due <= Clock::now()) {
    const std::vector<char>& bytes = pipe->held.front().bytes;
    const ssize_t count =
        send(pipe->to, bytes.data() + pipe->sent_of_first, bytes.size() - pipe->sent_of_first, MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      pipe->held.clear();
      pipe->ended = pipe->told = true;
      return;
    }
    pipe->held_bytes -= static_cast<size_t>(count);
    pipe->sent_of_first += static_cast<size_t>(count);
    if (pipe->sent_of_first < bytes.size()) return;
    pipe->held.pop_front();
    pipe->sent_of_first = 0;
  }
  if (pipe->held.empty() && pipe->ended && !pipe->told) {
    pipe->told = true;
    shutdown(pipe->to, SHUT_WR);
  }
}

void Relay::Run() {
  std::vector<pollfd> fds;
  for (;;) {
    fds = {{.fd = stop_.get(), .events = POLLIN, .revents = 0},
           {.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    const auto now = Clock::now();
    auto next = now + std::chrono::hours(1);
    for (Connection& each : all_) {
      for (Pipe* pipe : {&each.up, &each.down}) {
        const bool due = !pipe->held.empty() && pipe->held.front().due <= now;
        if (!pipe->held.empty() && !due) next = std::min(next, pipe->held.front().due);
        const bool reads = !pipe->ended && pipe->held_bytes < kMostHeldBytes;
        fds.push_back({.fd = reads ? pipe->from : -1, .events = POLLIN, .revents = 0});
        fds.push_back({.fd = due ? pipe->to : -1, .events = POLLOUT, .revents = 0});
      }
    }
    const auto wait = std::chrono::duration_cast<std::chrono::nanoseconds>(next - now).count();
    const timespec until{.tv_sec = wait / 1'000'000'000, .tv_nsec = wait % 1'000'000'000};
    if (ppoll(fds.data(), fds.size(), &until, nullptr) < 0) continue;
    if (fds[0].revents != 0) return;
    size_t at = 2;
    for (Connection& each : all_)
      for (Pipe* pipe : {&each.up, &each.down}) {
        if (fds[at].fd >= 0 && fds[at].revents != 0) Read(pipe);
        at += 2;
        Write(pipe);
      }
    all_.remove_if([](const Connection& each) { return each.up.told && each.down.told; });
    if (fds[1].revents != 0) Accept();
  }
}

}  // namespace tilewire::bench
