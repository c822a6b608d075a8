// One connection that sends without an end, beside a call of its own that is open: it is ended, and keeps
// nobody waiting.
#include <dlfcn.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "server/rpc/listener/file_descriptor.h"
#include "tests/bench/http2_frames.h"
#include "tests/integration/helpers.h"

namespace tilewire::testing {
namespace {

namespace http2 = bench::http2;

constexpr auto kRmse = "/tilewire.v1.Kernels/Rmse";
constexpr uint8_t kPriority = 2, kContinuation = 9;

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
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

class Resets : public Floods {
 protected:
  TestServer server_{Options(200)};
};

TEST_F(Floods, OfAHeaderAreEnded) {
  for (const size_t frame : {size_t{1}, size_t{500}, size_t{16'384}}) {
    const int ended = server_.observer().ended();
    Flood flood(server_.address());
    ASSERT_TRUE(IsOpen(server_, 1));
    // A literal of a gigabyte.
    ASSERT_TRUE(flood.Send(Frame(http2::kHeaders, 0, 3,
                                 http2::CallHeaders(false, kRmse, 600'000) + std::string("\0\3abc", 5) +
                                     std::string("\x7f\x81\xff\xff\xff\x3", 6))));
    size_t sent = 0;
    while (sent < (4 << 20) && flood.Send(Frame(kContinuation, 0, 3, std::string(frame, 'a')))) sent += frame;
    EXPECT_TRUE(flood.Closes()) << frame;
    EXPECT_TRUE(Eventually([&] { return server_.observer().ended() == ended + 1; })) << frame;
  }
  ExpectUnharmed(server_);
}

TEST_F(Floods, HeadersInAFewFramesAreNone) {
  Flood flood(server_.address());
  for (int i = 0; i < 100; ++i) {
    const std::string block = http2::CallHeaders(false, kRmse, 600'000);
    const uint32_t stream = 3 + 2 * static_cast<uint32_t>(i);
    ASSERT_TRUE(flood.Send(Frame(http2::kHeaders, 0, stream, block.substr(0, 3)) +
                           Frame(kContinuation, 0, stream, block.substr(3, 2)) +
                           Frame(kContinuation, http2::kEndHeaders, stream, block.substr(5))));
  }
  EXPECT_TRUE(IsOpen(server_, 101));
  EXPECT_EQ(server_.observer().ended(), 0);
}

/// It acknowledges no SETTINGS; gRPC 1.51 would take 16 MiB of it.
TEST_F(Floods, OfMetadataAreRefused) {
  Flood flood(server_.address());
  ASSERT_TRUE(IsOpen(server_, 1));
  // Of 10,000 bytes (RFC 7541, 5.1).
  const std::string large = std::string("\0\3abc\x7f\x91\x4d", 8) + std::string(10'000, 'a');
  ASSERT_TRUE(flood.Send(
      Frame(http2::kHeaders, http2::kEndHeaders, 3, http2::CallHeaders(false, kRmse, 600'000) + large)));
  EXPECT_TRUE(flood.Comes("metadata size exceeds limit"));
  ExpectUnharmed(server_);
}

/// Behind one of whose connections all others would wait that it was left.
TEST_F(Floods, AreNotLeftToThreadsOfGrpc) {
  constexpr auto kName = "_ZN9grpc_core8Executor17IsThreadedDefaultEv";
  auto* const its_own = reinterpret_cast<bool (*)()>(dlsym(RTLD_NEXT, kName));
  auto* const called = reinterpret_cast<bool (*)()>(dlsym(RTLD_DEFAULT, kName));
  ASSERT_NE(its_own, nullptr);
  EXPECT_TRUE(its_own()) << "it has some";
  EXPECT_FALSE(called());
}

/// Each sends a window before it learns that it is refused.
TEST(Refused, WhatTheyHadSentIsNoFlood) {
  TestServer::Options options;
  options.rpc.listen = {"127.0.0.1:0"};
  options.rpc.anonymous = false;
  options.rpc.connections.most_failed_calls = 1'000'000;
  TestServer server(options);
  const auto channel = server.Connect();
  const std::string large(4 << 20, 'a');
  for (int i = 0; i < 500; ++i)
    ASSERT_EQ(ByteCall(channel, kRmse).Unary(large).status.error_code(), grpc::StatusCode::UNAUTHENTICATED)
        << i;
  EXPECT_EQ(server.observer().ended(), 0);
}

/// Faster than threads take them. His next connection is ended soon.
TEST_F(Resets, KeepNobodyWaiting) {
  Flood flood(server_.address());
  ASSERT_TRUE(IsOpen(server_, 1));
  std::atomic<bool> enough{false};
  std::atomic<int> pieces{0};
  std::thread sends([&] {
    for (bool open = true; open && !enough; ++pieces) {
      std::string piece;
      for (int i = 0; i < 100; ++i) piece += flood.Headers(http2::kEndHeaders) + flood.Reset();
      open = flood.Send(piece);
    }
  });
  EXPECT_TRUE(Eventually([&] { return pieces > 1; }));
  const auto stub = v1::Device::NewStub(server_.Connect());
  for (int i = 0; i < 10; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1::DescribeResponse response;
    EXPECT_EQ(stub->Describe(&context, {}, &response).error_code(), grpc::StatusCode::OK);
  }
  EXPECT_TRUE(Eventually([&] { return server_.observer().ended() == 1; }));
  enough = true;
  sends.join();
  EXPECT_TRUE(flood.Closes());
  ASSERT_TRUE(Eventually([&] { return server_.observer().closed() >= 1; }));

  Flood again(server_.address());
  for (int i = 0; i < 80; ++i)
    if (!again.Send(again.Headers(http2::kEndHeaders) + again.Reset())) break;
  EXPECT_TRUE(again.Closes());
  EXPECT_TRUE(Eventually([&] { return server_.observer().ended() >= 2; }));
}

/// Calls in between pay for none of it.
TEST_F(Floods, OfFramesThatCarryNothingAreEnded) {
  Flood flood(server_.address());
  ASSERT_TRUE(IsOpen(server_, 1));
  std::string piece;
  while (piece.size() < 64 << 10) piece += Frame(kPriority, 0, 1, std::string("\0\0\0\0\x10", 5));
  size_t sent = 0;
  while (sent < size_t{4} << 30 && flood.Send(piece + flood.Headers(http2::kEndHeaders | http2::kEndStream)))
    sent += piece.size();
  EXPECT_LT(sent, size_t{4} << 30);
  EXPECT_TRUE(flood.Closes());
  EXPECT_TRUE(Eventually([&] { return server_.observer().ended() >= 1; }));
  ExpectUnharmed(server_);
}

}  // namespace
}  // namespace tilewire::testing
