// Connections that send what they like, by hand.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "server/rpc/listener/file_descriptor.h"
#include "tests/bench/http2_frames.h"
#include "tests/integration/helpers.h"

namespace tilewire::testing {

namespace http2 = bench::http2;

inline constexpr auto kRmse = "/tilewire.v1.Kernels/Rmse";
inline constexpr uint8_t kPriority = 2, kContinuation = 9;

inline std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string frame;
  http2::AppendFrame(&frame, static_cast<http2::Frame>(type), flags, stream, payload);
  return frame;
}

/// By hand, with a call that is open: its message does not come.
class Flood {
 public:
  explicit Flood(const std::string& address) : socket_(http2::Connect(address)) {
    EXPECT_TRUE(Send(http2::ClientGreeting(1 << 20) + Frame(http2::kHeaders, http2::kEndHeaders, 1,
                                                            http2::CallHeaders(true, kRmse, 600'000))));
  }
  /// False once the server has closed the connection.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      char reply[4096];
      pollfd ready{.fd = socket_.get(), .events = POLLOUT | POLLIN, .revents = 0};
      if (poll(&ready, 1, 60'000) != 1) return false;
      if (ready.revents & POLLIN && recv(socket_.get(), reply, sizeof reply, MSG_DONTWAIT) == 0) return false;
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EAGAIN) return false;
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  /// As calls know it (ServerContext::peer()).
  std::string Name() const {
    sockaddr_in here{};
    socklen_t bytes = sizeof here;
    EXPECT_EQ(getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&here), &bytes), 0);
    return "ipv4:127.0.0.1:" + std::to_string(ntohs(here.sin_port));
  }
  /// Reads until that has come.
  bool Comes(std::string_view text) {
    std::string came;
    char reply[4096];
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    while (came.find(text) == came.npos) {
      if (poll(&ready, 1, 60'000) != 1) return false;
      const ssize_t read = recv(socket_.get(), reply, sizeof reply, MSG_DONTWAIT);
      if (read <= 0) return false;
      came.append(reply, static_cast<size_t>(read));
    }
    return true;
  }
  /// Reads until it is closed.
  bool Closes() {
    char reply[4096];
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    while (poll(&ready, 1, 60'000) == 1)
      if (recv(socket_.get(), reply, sizeof reply, MSG_DONTWAIT) <= 0) return true;
    return false;
  }
  /// The headers of another call.
  std::string Headers(uint8_t flags) {
    return Frame(http2::kHeaders, flags, stream_ += 2, http2::CallHeaders(false, kRmse, 600'000));
  }
  std::string Reset() const { return Frame(http2::kReset, 0, stream_, std::string("\0\0\0\x8", 4)); }
  uint32_t stream() const { return stream_; }

 private:
  const rpc::FileDescriptor socket_;
  uint32_t stream_ = 1;
};

class Floods : public ::testing::Test {
 protected:
  static TestServer::Options Options(int most_failed_calls) {
    TestServer::Options options;
    options.rpc.listen = {"127.0.0.1:0"};
    options.rpc.connections.most_failed_calls = most_failed_calls;
    return options;
  }
  static bool IsOpen(TestServer& server, int calls) {
    return Eventually([&] { return server.observer().started() >= calls; });
  }
  TestServer server_{Options(1'000'000)};
};

}  // namespace tilewire::testing
