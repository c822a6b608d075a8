// A listener with nothing behind it, and clients that only connect.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/rpc/listener/listener.h"
#include "tests/unit/waiting.h"

namespace tilewire::testing {

using rpc::ConnectionLimits;
using rpc::FileDescriptor;
using rpc::Listener;
using rpc::Refusal;

class CountingObserver final : public rpc::ConnectionObserver {
 public:
  void OnConnectionOpened() override { ++opened; }
  void OnConnectionClosed() override { ++closed; }
  void OnConnectionRefused(Refusal why) override { ++refused[static_cast<size_t>(why)]; }
  void OnConnectionEnded(rpc::Ending why) override { ++ended[static_cast<size_t>(why)]; }
  void OnWarning(std::string_view text) override {
    const std::lock_guard lock(mutex_);
    warnings_ += std::string(text) + "\n";
  }
  std::string warnings() const {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }
  int Refused(Refusal why) const { return refused[static_cast<size_t>(why)]; }
  std::atomic<int> opened{0}, closed{0};
  std::array<std::atomic<int>, 3> refused{};
  std::array<std::atomic<int>, rpc::kEndingNames.size()> ended{};

 private:
  mutable std::mutex mutex_;
  std::string warnings_;
};

/// Of one end of a connection, by getsockname or getpeername; 0: it has none.
template <typename Name>
int PortOf(const FileDescriptor& fd, const Name& name) {
  sockaddr_in at{};
  socklen_t bytes = sizeof at;
  return name(fd.get(), reinterpret_cast<sockaddr*>(&at), &bytes) == 0 ? ntohs(at.sin_port) : 0;
}

/// A listener whose connections are kept.
class Door {
 public:
  explicit Door(const ConnectionLimits& limits = {}, const std::vector<std::string>& listen = {"127.0.0.1:0"},
                rpc::MemoryWatch::Read memory = nullptr, rpc::WindowOptions windows = {})
      : listener_(Listener::Open(listen, limits, &observer, std::move(memory)).value()) {
    listener_->Start(
        [this](FileDescriptor connection, rpc::Entrance by) {
          const std::lock_guard lock(mutex_);
          beyond_ += by.beyond ? 1 : 0;
          inside_.push_back(std::move(connection));
        },
        std::move(windows));
  }
  ~Door() { listener_->Stop(); }

  Listener& listener() { return *listener_; }
  const std::string& address() const { return listener_->addresses().front(); }
  bool Inside(size_t count) {
    return Eventually([&] {
      const std::lock_guard lock(mutex_);
      return inside_.size() == count;
    });
  }
  /// How many came that others may see or be.
  int beyond() {
    const std::lock_guard lock(mutex_);
    return beyond_;
  }
  int fd(size_t i) {
    const std::lock_guard lock(mutex_);
    return inside_[i].get();
  }
  /// What is at the other end of a client that is inside, whoever came first; -1: none.
  int fd(const FileDescriptor& client) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(inside_.begin(), inside_.end(), [&](const FileDescriptor& fd) {
      return PortOf(client, getsockname) == PortOf(fd, getpeername);
    });
    return found == inside_.end() ? -1 : found->get();
  }
  /// Ends one as gRPC does.
  void End(size_t i) {
    const std::lock_guard lock(mutex_);
    shutdown(inside_[i].get(), SHUT_RDWR);
    inside_[i].Reset();
  }

  CountingObserver observer;

 private:
  std::mutex mutex_;
  std::vector<FileDescriptor> inside_;
  int beyond_ = 0;
  std::unique_ptr<Listener> listener_;
};

inline sockaddr_in V4(const std::string& host, int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &at.sin_addr);
  return at;
}

inline int PortOf(const std::string& address) {
  return std::stoi(address.substr(address.rfind(':') + 1));
}

/// Connects `fd`, or a new socket, to 127.0.0.1 from another address of this machine.
inline FileDescriptor Connect(const std::string& address, const std::string& from = "127.0.0.1",
                              FileDescriptor fd = FileDescriptor(socket(AF_INET, SOCK_STREAM, 0))) {
  const auto here = V4(from, 0), there = V4("127.0.0.1", PortOf(address));
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here), 0);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
  return fd;
}

/// Whether the other end closes it, rather than sends anything.
inline bool IsClosed(const FileDescriptor& fd) {
  constexpr int kPatienceMs = 60'000;
  pollfd ends{.fd = fd.get(), .events = POLLIN, .revents = 0};
  char byte = 0;
  return poll(&ends, 1, kPatienceMs) == 1 && read(fd.get(), &byte, 1) <= 0;
}

/// Sends and has it read, as gRPC does: no buffer of the system need hold it.
inline void Pass(const FileDescriptor& from, int to, size_t bytes) {
  std::vector<char> piece(16384);
  for (; bytes > 0; bytes -= std::min(bytes, piece.size())) {
    const auto sent = static_cast<ssize_t>(std::min(bytes, piece.size()));
    ASSERT_EQ(send(from.get(), piece.data(), static_cast<size_t>(sent), MSG_NOSIGNAL), sent);
    for (ssize_t got = 0; got < sent;) {
      pollfd readable{.fd = to, .events = POLLIN, .revents = 0};
      ASSERT_EQ(poll(&readable, 1, 60'000), 1);
      const ssize_t n = read(to, piece.data(), static_cast<size_t>(sent - got));
      ASSERT_GT(n, 0);
      got += n;
    }
  }
}

}  // namespace tilewire::testing
