// One end of a connection by hand, frame by frame.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "server/rpc/listener/file_descriptor.h"
#include "tests/bench/http2_frames.h"

namespace tilewire::testing {

/// Fails the test where nothing goes or comes any more. One thread at a time.
class Framed {
 public:
  explicit Framed(rpc::FileDescriptor socket) : socket_(std::move(socket)) {}

  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      Wait(POLLOUT);
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      ASSERT_GT(sent, 0);
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void SendFrame(bench::http2::Frame type, uint8_t flags, uint32_t stream, std::string_view payload) {
    std::string frame;
    bench::http2::AppendFrame(&frame, type, flags, stream, payload);
    Send(frame);
  }
  std::string Receive(size_t bytes) {
    std::string received(bytes, '\0');
    for (size_t came = 0; came < bytes;) {
      Wait(POLLIN);
      const ssize_t count = recv(socket_.get(), received.data() + came, bytes - came, MSG_DONTWAIT);
      if (count <= 0) {
        ADD_FAILURE() << "the connection has ended";
        return received;
      }
      came += static_cast<size_t>(count);
    }
    return received;
  }

 private:
  void Wait(short events) const {
    constexpr int kGiveUpMs = 60'000;  // never, but for a server that does not go on
    pollfd ready{.fd = socket_.get(), .events = events, .revents = 0};
    int came = 0;
    while ((came = poll(&ready, 1, kGiveUpMs)) < 0 && errno == EINTR) {
    }
    EXPECT_GT(came, 0) << "nothing more goes or comes";
  }

  const rpc::FileDescriptor socket_;
};

}  // namespace tilewire::testing
