// One connection that sends without an end, beside a call of its own that is open: it is ended, and keeps
// nobody waiting.
#include <dlfcn.h>

#include <atomic>
#include <thread>

#include "server/rpc/listener/read_accounts.h"
#include "tests/integration/flood.h"

namespace tilewire::testing {
namespace {

class Resets : public Floods {
 protected:
  TestServer server_{Options(200)};
};

TEST_F(Floods, OfAHeaderAreEnded) {
  for (const size_t frame : {size_t{1}, size_t{500}, size_t{16'384}}) {
    const int ended = server_.observer().ended(), started = server_.observer().started();
    Flood flood(server_.address());
    ASSERT_TRUE(IsOpen(server_, started + 1));
    std::shared_ptr<rpc::ConnectionAccount> account;
    ASSERT_TRUE(Eventually([&] {
      account = rpc::ReadAccounts::OfProcess().Find(flood.Name());
      return account != nullptr;
    }));
    // A literal of a gigabyte.
    ASSERT_TRUE(flood.Send(Frame(http2::kHeaders, 0, 3,
                                 http2::CallHeaders(false, kRmse, 600'000) + std::string("\0\3abc", 5) +
                                     std::string("\x7f\x81\xff\xff\xff\x3", 6))));
    size_t sent = 0;
    while (sent < (4 << 20) && flood.Send(Frame(kContinuation, 0, 3, std::string(frame, 'a')))) sent += frame;
    EXPECT_TRUE(flood.Closes()) << frame;
    EXPECT_TRUE(Eventually([&] { return server_.observer().ended() == ended + 1; })) << frame;
    EXPECT_TRUE(account->end_told) << "by nobody else again";
  }
  ExpectUnharmed(server_);
}

// And each call counts once, whatever comes behind it.
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
  const auto account = rpc::ReadAccounts::OfProcess().Find(flood.Name());
  ASSERT_NE(account, nullptr);
  EXPECT_EQ(account->begun, 101);
  for (int i = 0; i < 100; ++i) {
    const uint32_t stream = 3 + 2 * static_cast<uint32_t>(i);
    ASSERT_TRUE(flood.Send(Frame(http2::kHeaders, http2::kEndStream, stream, std::string("\0\1a", 3)) +
                           Frame(kContinuation, http2::kEndHeaders, stream, std::string("\1b", 2))));
  }
  ASSERT_TRUE(flood.Send(Frame(http2::kPing, 0, 0, "an echo.")));
  ASSERT_TRUE(flood.Comes("an echo."));
  EXPECT_EQ(account->begun, 101) << "what comes behind messages";
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
