// Calls that go wrong: typed errors, servers that leave, stall, lie or never answer; memory that must not be
// touched after a call returned.
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/client.h"
#include "tests/unit/client_fake_server.h"
#include "tests/unit/client_testing.h"
#include "tests/unit/waiting.h"

namespace tilewire::client {
namespace {

using namespace std::chrono_literals;
using testing::FakeBehaviour;
using testing::FakeServer;
using ::testing::HasSubstr;
using testing::Spec;
using tilewire::testing::Eventually;
using Clock = std::chrono::steady_clock;

/// Memory that is unmapped with the object: whoever reads it later crashes, and a socket that does fails.
class Pages {
 public:
  explicit Pages(int64_t floats) : spec_(Spec(DType::kF32, {floats})) {
    data_ =
        ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (data_ == MAP_FAILED) std::abort();
  }
  ~Pages() { ::munmap(data_, size()); }
  ArraySource source() const { return ArraySource::FromMemory(spec_, data_); }
  size_t size() const { return static_cast<size_t>(spec_.bytes()); }

 private:
  ArraySpec spec_;
  void* data_;
};

constexpr int64_t kLarge = 8 << 20;  ///< floats: 32 MiB an operand

/// An RMSE of two large arrays whose memory is gone right after.
Status LargeRmse(const std::string& address, const CallOptions& options = {},
                 const ConnectOptions& connect = {}) {
  Client client = Client::Connect(address, connect);
  const Pages a(kLarge), b(kLarge);
  const auto reply = client.Rmse(a.source(), b.source(), {}, options);
  return reply ? Status() : reply.error();
}

/// A 16 MiB transpose that discards its result.
Status LargeTranspose(const std::string& address, const CallOptions& options = {}) {
  const std::vector<uint8_t> in(16 << 20);
  Client client = Client::Connect(address);
  const auto reply = client.Transpose(
      ArraySource::FromMemory(Spec(DType::kU8, {4096, 4096}), in.data()), {},
      [](uint64_t, std::span<const uint8_t>) { return Status(); }, options);
  return reply ? Status() : reply.error();
}

TEST(ClientFailure, ErrorsCarryWhatTheServerSaid) {
  FakeBehaviour behaviour;
  behaviour.fail_after_chunks = 3;
  FakeServer server(behaviour);
  const Status status = LargeRmse(server.address());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_EQ(status.reason(), "CHECKSUM");
  EXPECT_EQ(status.detail()->field, "chunk.crc32c");
  EXPECT_EQ(status.detail()->value, "7");
  EXPECT_EQ(status.detail()->allowed, "8");
  EXPECT_EQ(status.ToString(), "DATA_LOSS: chunk.crc32c is 7; allowed: 8");
  EXPECT_EQ(server.log().streams, 1);  // not retried
}

TEST(ClientFailure, AServerThatLeavesWhileChunksAreSentIsNoticed) {
  for (const int chunks : {0, 1, 10}) {
    FakeBehaviour behaviour;
    behaviour.fail_after_chunks = chunks;
    FakeServer server(behaviour);
    Client client = Client::Connect(server.address());
    for (int i = 0; i < 10; ++i) {
      const Pages a(kLarge / 4), b(kLarge / 4);
      const auto reply = client.Rmse(a.source(), b.source());
      ASSERT_FALSE(reply);
      EXPECT_EQ(reply.error().code(), Code::kDataLoss);
    }
    // The client is none the worse for it.
    server.Behave({});
    const Pages a(kLarge / 4), b(kLarge / 4);
    const auto reply = client.Rmse(a.source(), b.source());
    ASSERT_TRUE(reply) << reply.error().ToString();
    EXPECT_EQ(reply->values[0], 0);
  }
}

TEST(ClientFailure, DeadlinesEndSilentServers) {
  FakeBehaviour behaviour;
  behaviour.silent = true;
  FakeServer server(behaviour);
  for (const CallForm form : {CallForm::kUnary, CallForm::kStream}) {
    const Pages a(100), b(100);
    const auto start = Clock::now();
    const auto reply =
        Client::Connect(server.address()).Rmse(a.source(), b.source(), {}, {.timeout = 200ms, .form = form});
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code(), Code::kDeadlineExceeded);
    EXPECT_EQ(reply.error().reason(), "DEADLINE");
    EXPECT_GE(Clock::now() - start, 190ms);
    EXPECT_LT(Clock::now() - start, 30s);
  }
}

TEST(ClientFailure, DeadlinesEndStalledStreams) {
  FakeBehaviour behaviour;
  behaviour.stalled = true;
  FakeServer server(behaviour);
  const auto start = Clock::now();
  EXPECT_EQ(LargeRmse(server.address(), {.timeout = 300ms}).code(), Code::kDeadlineExceeded);
  EXPECT_LT(Clock::now() - start, 30s);
}

TEST(ClientFailure, StopRequestsEndEveryKindOfCall) {
  FakeBehaviour silent, stalled;
  silent.silent = stalled.stalled = true;
  FakeServer silent_server(silent), stalled_server(stalled);
  const auto cancelled = [](const FakeServer& server, auto call) {
    std::stop_source stop;
    const auto begun = [&server] { return server.log().calls + server.log().streams; };
    std::thread later([&, before = begun()] {
      EXPECT_TRUE(Eventually([&] { return begun() > before; }));
      stop.request_stop();
    });
    const auto start = Clock::now();
    const Status status = call(stop.get_token());
    later.join();
    EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
    EXPECT_EQ(status.reason(), "CANCELLED");
    EXPECT_LT(Clock::now() - start, 30s);
  };
  cancelled(silent_server,
            [&](std::stop_token stop) { return LargeRmse(silent_server.address(), {.stop = stop}); });
  cancelled(stalled_server,
            [&](std::stop_token stop) { return LargeRmse(stalled_server.address(), {.stop = stop}); });
  cancelled(silent_server, [&](std::stop_token stop) {
    return LargeRmse(silent_server.address(), {.stop = stop, .form = CallForm::kStream, .max_attempts = 1});
  });
  cancelled(silent_server, [&](std::stop_token stop) {
    return Client::Connect(silent_server.address()).Describe({.stop = stop}).error();
  });
  FakeBehaviour busy;
  busy.busy = 100;
  busy.pushback_ms = 60'000;
  FakeServer busy_server(busy);
  cancelled(busy_server, [&](std::stop_token stop) {  // while it waits for the next attempt
    return LargeRmse(busy_server.address(), {.stop = stop});
  });
  std::stop_source before;
  before.request_stop();
  EXPECT_EQ(LargeRmse(silent_server.address(), {.stop = before.get_token()}).code(), Code::kCancelled);
}

TEST(ClientFailure, APeerThatReadsNothingCannotKeepTheMemory) {
  testing::DeafPeer peer;
  std::atomic<uint64_t> sent = 0;
  const auto start = Clock::now();
  const Status status =
      LargeRmse(peer.address(), {.timeout = 4s, .progress = [&](const Progress& p) { sent = p.sent; }},
                {.dead_peer_timeout = 8s});
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.ToString();
  EXPECT_GT(sent, 0u);               // the peer did let chunks go
  EXPECT_LT(sent, 2u * 4 * kLarge);  // but not all
  EXPECT_LT(Clock::now() - start, 29s);
}

TEST(ClientFailure, NobodyThereIsUnavailable) {
  const testing::QuietPort port;
  const auto start = Clock::now();
  const std::string address = "127.0.0.1:" + std::to_string(port.number());
  EXPECT_EQ(LargeRmse(address).code(), Code::kUnavailable);
  EXPECT_EQ(LargeRmse(address, {.form = CallForm::kUnary}).code(), Code::kUnavailable);
  EXPECT_EQ(Client::Connect(address).Ping().error().code(), Code::kUnavailable);
  EXPECT_LT(Clock::now() - start, 50s);
}

TEST(ClientFailure, ServersThatLieAreFound) {
  using Lie = FakeBehaviour::Lie;
  FakeServer server;
  const auto streamed = [&](Lie lie) {
    FakeBehaviour behaviour;
    behaviour.lie = lie;
    server.Behave(behaviour);
    return LargeTranspose(server.address());
  };
  EXPECT_TRUE(streamed(Lie::kNone).ok());
  for (const Lie lie : {Lie::kNoOpened, Lie::kOpenedTwice, Lie::kNoResult, Lie::kMissingOutput,
                        Lie::kRepeatedOutput, Lie::kTooMuchOutput, Lie::kWrongSpec, Lie::kTwoResults}) {
    const Status status = streamed(lie);
    EXPECT_EQ(status.code(), Code::kInternal) << static_cast<int>(lie);
    EXPECT_EQ(status.reason(), "BAD_REPLY");
  }
  EXPECT_EQ(streamed(Lie::kWrongChecksum).code(), Code::kDataLoss);

  const float one = 1;
  const ArraySource source = ArraySource::FromMemory(Spec(DType::kF32, {}), &one);
  for (const Lie lie : {Lie::kWrongSpec, Lie::kShortData}) {
    for (const CallForm form : {CallForm::kUnary, CallForm::kStream}) {
      FakeBehaviour behaviour;
      behaviour.lie = lie;
      server.Behave(behaviour);
      const auto reply = Client::Connect(server.address()).Rmse(source, source, {}, {.form = form});
      ASSERT_FALSE(reply);
      EXPECT_EQ(reply.error().reason(), "BAD_REPLY");
    }
  }
}

TEST(ClientFailure, ASinkThatFailsEndsTheCall) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const std::vector<uint8_t> in(4 << 20);
  for (const CallForm form : {CallForm::kUnary, CallForm::kStream}) {
    const auto rows = form == CallForm::kUnary ? 2048 : 4096;
    int calls = 0;
    const auto reply =
        client.Transpose(ArraySource::FromMemory(Spec(DType::kU8, {rows, 1024}), in.data()), {},
                         [&](uint64_t, std::span<const uint8_t>) {
                           return ++calls, Status(Code::kResourceExhausted, "DISK", "disk full");
                         },
                         {.form = form});
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().ToString(), "RESOURCE_EXHAUSTED: disk full");
    EXPECT_EQ(calls, 1);
  }
}

TEST(ClientFailure, WrongCallsNeverReachTheServer) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const std::vector<uint8_t> data(64);
  const auto source = [&](DType dtype, const std::vector<int64_t>& dims) {
    return ArraySource::FromMemory(Spec(dtype, dims), data.data());
  };
  const auto rmse = [&](const ArraySource& a, const ArraySource& b, std::vector<int32_t> axes = {}) {
    const auto reply = client.Rmse(a, b, {std::move(axes)});
    return reply ? "accepted" : reply.error().ToString();
  };
  const auto f32 = source(DType::kF32, {2, 2});
  EXPECT_EQ(rmse(f32, source(DType::kI32, {2, 2})), "INVALID_ARGUMENT: b.dtype is i32; allowed: f32, as a");
  EXPECT_EQ(rmse(f32, source(DType::kF32, {4})), "INVALID_ARGUMENT: b.shape is (4); allowed: (2, 2), as a");
  EXPECT_THAT(rmse(source(DType::kBool, {2}), source(DType::kBool, {2})),
              HasSubstr("any but bool and complex"));
  EXPECT_THAT(rmse(f32, f32, {2}), HasSubstr("axes is 2"));
  EXPECT_THAT(rmse(f32, f32, {0, -2}), HasSubstr("twice"));
  const Sink sink = [](uint64_t, std::span<const uint8_t>) { return Status(); };
  EXPECT_THAT(client.Transpose(f32, {{0}}, sink).error().ToString(), HasSubstr("a permutation of all"));
  EXPECT_THAT(client.Execute(RmseOp{}, {&f32, 1}, sink).error().ToString(), HasSubstr("operands is 1"));
  EXPECT_EQ(server.log().calls + server.log().streams, 0);
}

}  // namespace
}  // namespace tilewire::client
