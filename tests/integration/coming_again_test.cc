// Who comes again and again, with another connection each time that is within all limits: what those that are
// gone have done counts, and others of the same address are served as ever.
#include "tests/integration/doors.h"
#include "tests/integration/flood.h"

namespace tilewire::testing {
namespace {

/// Empty frames that gRPC skips, 64 KiB.
std::string Skipped() {
  std::string piece;
  while (piece.size() < 64 << 10) piece += Frame(kPriority, 0, 1, std::string("\0\0\0\0\x10", 5));
  return piece;
}

class ComingAgain : public Floods {
 protected:
  /// Whether what is sent has been read, and answered.
  static bool Settles(Flood* flood) {
    return flood->Send(Frame(http2::kPing, 0, 0, "settled.")) && flood->Comes("settled.");
  }
  static bool AllClosed(TestServer& server, int count) {
    return Eventually([&] { return server.observer().closed() >= count; });
  }
};

TEST_F(ComingAgain, FramesOfThoseThatAreGoneCount) {
  const std::string piece = Skipped();
  const auto stays = server_.Connect();
  ExpectGoodCalls(server_);
  int connections = 0;
  for (bool open = true; open && connections < 30; ++connections) {
    Flood flood(server_.address());
    for (int i = 0; open && i < 16; ++i) open = flood.Send(piece);
    open = open && Settles(&flood);
  }
  EXPECT_GT(connections, 4);
  EXPECT_LT(connections, 30) << "each is within what one may send";
  EXPECT_TRUE(Eventually([&] { return server_.observer().ended() >= 1; }));

  const int ended = server_.observer().ended();
  const std::string message(1 << 20, 'a');
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(ByteCall(stays, kRmse).Unary(message).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  ExpectGoodCalls(server_);
  EXPECT_EQ(server_.observer().ended(), ended) << "others of the same address";
}

class ComingAgainWithCalls : public ComingAgain {
 protected:
  /// One connection after the other, each with so many calls that none is ended for: which of them is.
  template <typename F>
  int UntilOneIsEnded(int calls, const F& call) {
    for (int number = 1; number < 30; ++number) {
      Flood flood(server_.address());
      std::string all;
      for (int i = 0; i < calls; ++i) all += call(&flood);
      if (!flood.Send(all) || !Settles(&flood)) return number;
      EXPECT_EQ(server_.observer().ended(), 0);
    }
    return 0;
  }
  TestServer server_{Options(4000)};
};

TEST_F(ComingAgainWithCalls, FailedOnesOfThoseThatAreGoneCount) {
  EXPECT_GT(
      UntilOneIsEnded(300, [](Flood* flood) { return flood->Headers(http2::kEndHeaders) + flood->Reset(); }),
      3);
  EXPECT_TRUE(Eventually([&] { return server_.observer().ended() == 1; }));
  ExpectGoodCalls(server_);
}

TEST_F(ComingAgainWithCalls, ThoseThatAreOpenAtTheEndCameToNothing) {
  EXPECT_GT(UntilOneIsEnded(200, [](Flood* flood) { return flood->Headers(http2::kEndHeaders); }), 4);
  EXPECT_TRUE(Eventually([&] { return server_.observer().ended() == 1; }));
  ExpectGoodCalls(server_);
}

/// Whose deadline is over before anybody looks.
TEST_F(ComingAgainWithCalls, CallsWithoutTimeOrMessageFail) {
  Flood flood(server_.address());
  uint32_t stream = 3;
  bool open = true;
  constexpr int kEach = 100;
  for (int begun = kEach; open && begun < 10'000; begun += kEach) {
    std::string calls;
    for (int call = 0; call < kEach; ++call, stream += 2)
      calls += Frame(http2::kHeaders, http2::kEndHeaders, stream, http2::CallHeaders(false, kRmse, 0));
    open = flood.Send(calls) && Settles(&flood);
    // Each is taken, and ends because it is late: it counts neither as untaken nor as cancelled.
    open = open &&
           Eventually([&] { return server_.observer().started() > begun || server_.observer().ended() > 0; });
  }
  EXPECT_FALSE(open);
  EXPECT_TRUE(Eventually([&] { return server_.observer().ended() == 1; }));
  ExpectGoodCalls(server_);
}

/// Nobody is there any more for whom it could be read.
TEST(Listener, WhatWhoIsGoneHasSentIsNotRead) {
  Door door;
  for (const size_t bytes : {size_t{1} << 10, size_t{40} << 10}) {
    auto client = Connect(door.address());
    const int number = bytes == 1 << 10 ? 0 : 1;
    ASSERT_TRUE(door.Inside(number + 1));
    const std::string sent(bytes, 'a');
    for (size_t at = 0; at < bytes;) {
      const ssize_t some = send(client.get(), sent.data() + at, bytes - at, MSG_NOSIGNAL);
      ASSERT_GT(some, 0);
      at += static_cast<size_t>(some);
    }
    client.Reset();
    char byte = 0;
    if (number == 0) {
      EXPECT_TRUE(Eventually([&] { return recv(door.fd(number), &byte, 1, MSG_DONTWAIT) == 1; }))
          << "farewells are";
    } else {
      EXPECT_TRUE(Eventually([&] {
        const ssize_t left = recv(door.fd(number), &byte, 1, MSG_DONTWAIT | MSG_PEEK);
        return left == 0 || (left < 0 && errno != EAGAIN);
      }));
    }
  }
}

}  // namespace
}  // namespace tilewire::testing
