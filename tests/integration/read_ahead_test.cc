// The next message of a stream comes while the last one is staged: one, within its own share of the receive
// memory, and whatever happens to either.
#include "proto/wire/codec.h"
#include "server/base/limits.h"
#include "server/rpc/calls/execute.h"
#include "tests/bench/crowd.h"
#include "tests/integration/helpers.h"
#include "tests/integration/own_time.h"
#include "tests/unit/held_device.h"

namespace tilewire::testing {
namespace {

using bench::Stall;
using bench::StalledCrowd;

const std::vector<int64_t> kTwoMessages{512, 1024};  // f32: two messages of 1 MiB, more than staging holds
constexpr size_t kTwoMessagesBytes = 2 * kMiB;

/// A server behind staging whose copies stand still from now on, so that the first message is stuck in the
/// middle.
class Held {
 public:
  explicit Held(TestServer::Options options = {})
      : server(std::make_unique<HeldDevice>(DeviceAt(Where::kStaged), gate_), options) {
    gate_->Close();
  }
  ~Held() { Release(); }
  void Release() { gate_->Open(); }
  int64_t copies() const { return gate_->came(); }
  /// Whether all calls end although the device does not go on.
  bool CallsEnd() { return server.rpc().WaitIdle(Clock::now() + std::chrono::seconds(60)); }
  Status OnlyStatus() {
    const auto records = server.observer().records();
    EXPECT_EQ(records.size(), 1u);
    return records.empty() ? Status() : records[0].status;
  }

 private:
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();

 public:
  TestServer server;
};

/// Two messages under way: one that staging cannot take, and one that was read ahead, since its Write ends.
bool SendBoth(RawStream* raw, const std::string& data, std::optional<uint32_t> crc = {}) {
  return raw->Open(TransposeOpen(v1::DTYPE_F32, kTwoMessages)) &&
         raw->Send(0, 0, std::string_view(data).substr(0, kMiB)) &&
         raw->Send(0, kMiB, std::string_view(data).substr(kMiB), crc);
}

/// How many bytes of messages a client gets rid of while staging stands still; `least` at least.
int64_t SentWhileHeld(int64_t quota, int64_t least) {
  TestServer::Options options;
  options.rpc.receive.quota = quota;
  Held held(options);
  int64_t sent = 0;
  {
    const StalledCrowd crowd(held.server.address(), {Stall::kOneOperand}, 8 * kMiB);
    EXPECT_TRUE(Eventually([&] { return crowd.counts().sent > least; }));
    EXPECT_TRUE(crowd.WaitUntilQuiet(std::chrono::seconds(1), std::chrono::minutes(2)));
    sent = crowd.counts().sent;
    EXPECT_EQ(crowd.counts().ended + crowd.counts().reset + crowd.counts().closed, 0);
  }
  EXPECT_TRUE(held.CallsEnd()) << "the client left with one message stuck, one here and one begun";
  held.Release();
  ExpectUnharmed(held.server);
  return sent;
}

TEST(ReadAhead, OneMessageAndNoMore) {
  const int64_t window = 2 * rpc::kDefaultReceiveWindowBytes;  // gRPC gives back more than was read, at times
  const int64_t ahead = SentWhileHeld(rpc::kDefaultReceiveQuotaBytes, 2 * kMiB);
  const int64_t without = SentWhileHeld(8 * kMiB, kMiB);  // a share too small for a message
  EXPECT_LE(without, kMiB + window);
  EXPECT_LE(ahead, 2 * kMiB + window);
}

TEST(ReadAhead, HalfCloseBehindIt) {
  Held held;
  const std::string data = Floats(kTwoMessagesBytes / 4, 1);
  RawStream raw(held.server.Connect());
  ASSERT_TRUE(SendBoth(&raw, data));
  raw.stream->WritesDone();
  held.Release();
  const auto status = raw.Drain();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(raw.output == HostTranspose(data, DType::kF32, kTwoMessages));
  ExpectUnharmed(held.server);
}

TEST(ReadAhead, HalfCloseTooEarly) {
  Held held;
  RawStream raw(held.server.Connect());
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, kTwoMessages)));
  ASSERT_TRUE(raw.Send(0, 0, Floats(kMiB / 4, 1)));
  raw.stream->WritesDone();
  held.Release();
  ExpectError(raw.Drain(), grpc::StatusCode::INVALID_ARGUMENT, "BYTES_MISSING");
  ExpectUnharmed(held.server);
}

TEST(ReadAhead, ItIsWrong) {
  Held held;
  const std::string data = Floats(kTwoMessagesBytes / 4, 1);
  RawStream raw(held.server.Connect());
  ASSERT_TRUE(SendBoth(&raw, data, 12345));
  held.Release();
  ExpectError(raw.Drain(), grpc::StatusCode::DATA_LOSS, "CHECKSUM", "chunk.crc32c", "12345");
  ExpectUnharmed(held.server);
}

TEST(ReadAhead, ItIsTooLarge) {
  Held held;
  RawStream raw(held.server.Connect());
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, kTwoMessages)));
  ASSERT_TRUE(raw.Send(0, 0, Floats(kMiB / 4, 1)));
  ASSERT_TRUE(raw.Send(0, kMiB, std::string(7 * kMiB, 'x')));
  held.Release();
  ExpectError(raw.Drain(), grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT", "message");
  ExpectUnharmed(held.server);
}

// Not when its turn comes, which may be late.
TEST(ReadAhead, WhatIsTooLargeIsDroppedWhenItComes) {
  for (const size_t bytes : {size_t{kMaxMessageBytes}, size_t{kMaxMessageBytes} + 1}) {
    bool dropped = false;
    std::string text(bytes, 'x');
    grpc::Slice slice(
        text.data(), text.size(), [](void* flag) { *static_cast<bool*>(flag) = true; }, &dropped);
    rpc::MessageRead read;
    read.message = grpc::ByteBuffer(&slice, 1);
    slice = grpc::Slice();
    read.Complete(true);
    EXPECT_EQ(dropped, bytes > size_t{kMaxMessageBytes});
    EXPECT_EQ(read.refusal.reason(), dropped ? "LIMIT" : "");
  }
}

TEST(ReadAhead, ClientCancels) {
  Held held;
  const std::string data = Floats(kTwoMessagesBytes / 4, 1);
  RawStream raw(held.server.Connect());
  ASSERT_TRUE(SendBoth(&raw, data));
  raw.context.TryCancel();
  EXPECT_EQ(raw.Drain().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(held.CallsEnd());
  EXPECT_EQ(held.OnlyStatus().reason(), "CANCELLED");
  held.Release();
  ExpectUnharmed(held.server);
}

TEST(ReadAhead, DeadlinePasses) {
  Held held;
  const std::string data = Floats(kTwoMessagesBytes / 4, 1);
  RawStream raw(held.server.Connect(), 3);
  (void)SendBoth(&raw, data);  // a busy machine may need longer than that
  EXPECT_EQ(raw.Drain().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(held.CallsEnd());
  held.Release();
  ExpectUnharmed(held.server);
}

TEST(ReadAhead, ServerEnds) {
  const std::string data = Floats(kTwoMessagesBytes / 4, 1);
  auto held = std::make_unique<Held>();
  RawStream raw(held->server.Connect());
  ASSERT_TRUE(SendBoth(&raw, data));
  held.reset();
  EXPECT_FALSE(raw.Drain().ok());
}

// Only the first message's client is to blame for nothing: it waits for the server.
TEST(ReadAhead, WaitingForStagingIsNotIdleAndSilenceAfterwardsIs) {
  OwnTimeOfServer time;
  Held held(time.Options());
  const StalledCrowd crowd(held.server.address(), {Stall::kOneOperand}, 8 * kMiB);
  ASSERT_TRUE(Eventually([&] { return held.copies() > 0; }));  // it stages the first message
  time.Pass(held.server, 24);
  EXPECT_EQ(crowd.counts().ended + crowd.counts().reset, 0);
  held.Release();
  EXPECT_TRUE(Eventually([&] { return crowd.counts().sent > 8 * kMiB; })) << "all of the operand";
  EXPECT_EQ(crowd.counts().ended, 0);
  time.PassUntil(held.server, [&] { return crowd.counts().ended == 1; });
  EXPECT_TRUE(held.CallsEnd());
  EXPECT_EQ(held.OnlyStatus().reason(), "IDLE");
  ExpectUnharmed(held.server);
}

class ReadAheadOn : public OnBoth {};
TILEWIRE_ON_BOTH(ReadAheadOn);

TEST_P(ReadAheadOn, StallInTheMiddleOfAMessageIsIdle) {
  OwnTimeOfServer time;
  TestServer server(device(), time.Options());
  const StalledCrowd crowd(server.address(), {Stall::kMidMessage, Stall::kMidBlock}, 8 * kMiB);
  ASSERT_TRUE(Eventually([&] {
    const EngineStats stats = server.engine().stats();
    return stats.jobs_in_flight == 1 && stats.jobs_open == 1;  // of which no message is whole
  }));
  time.PassUntil(server, [&] { return crowd.counts().ended == 2; });
  EXPECT_TRUE(server.rpc().WaitIdle(Clock::now() + std::chrono::seconds(60)));
  for (const auto& record : server.observer().records()) EXPECT_EQ(record.status.reason(), "IDLE");
  ExpectUnharmed(server);
}

// One message, for which its job is to have memory; none is read ahead.
TEST_P(ReadAheadOn, WhoWaitsForMemorySendsOneMessageAndNoMore) {
  TestServer::Options options;
  options.engine.max_in_flight = 1;
  options.engine.queue_seconds = 600;
  TestServer server(device(), options);
  RawStream running(server.Connect());
  ASSERT_TRUE(running.OpenAndSend(TransposeOpen(v1::DTYPE_F32, kTwoMessages)));
  ASSERT_TRUE(server.InFlight(1));
  {
    const StalledCrowd crowd(server.address(), {Stall::kOneOperand}, 8 * kMiB);
    EXPECT_TRUE(server.Queued(1));
    EXPECT_TRUE(crowd.WaitUntilQuiet(std::chrono::seconds(1), std::chrono::minutes(2)));
    EXPECT_LE(crowd.counts().sent, kMiB + 2 * rpc::kDefaultReceiveWindowBytes);
  }
  EXPECT_TRUE(server.Queued(0)) << "its client has left";
  running.context.TryCancel();
  ExpectUnharmed(server);
}

// The read is under way when the message before it turns out to be wrong. Whatever comes of that read, the
// status is that message's, and it does not wait for the read.
TEST_P(ReadAheadOn, TheMessageBeforeItIsWrong) {
  TestServer server(device(), {});
  const std::string data = Floats(kTwoMessagesBytes / 4, 1);
  for (int then = 0; then < 5; ++then)
    for (int turn = 0; turn < 4; ++turn) {
      RawStream raw(server.Connect());
      ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, kTwoMessages)));
      ASSERT_TRUE(raw.Send(0, 0, std::string_view(data).substr(0, 100'000)));
      ASSERT_TRUE(raw.Send(0, 100'000, std::string_view(data).substr(100'000, 300'000), 1));
      // Then: silence, a message, many, half-close, or all of these. Writes fail once the call has ended.
      if (then == 1) (void)raw.Send(0, 400'000, std::string_view(data).substr(400'000, 1000));
      if (then == 2 || then == 4) (void)raw.SendAll(0, data, kMiB, 400'000);
      if (then >= 3) raw.stream->WritesDone();
      ExpectError(raw.Drain(), grpc::StatusCode::DATA_LOSS, "CHECKSUM", "chunk.crc32c", "1");
    }
  ExpectUnharmed(server);
}

TEST_P(ReadAheadOn, TheClientLeavesAfterAWrongMessage) {
  TestServer server(device(), {});
  const std::string data = Floats(kTwoMessagesBytes / 4, 1);
  for (int turn = 0; turn < 10; ++turn) {
    RawStream raw(server.Connect());
    ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, kTwoMessages)));
    (void)raw.Send(0, 0, std::string_view(data).substr(0, 300'000), 1);
    if (turn % 2) (void)raw.Send(0, 300'000, std::string_view(data).substr(300'000, 300'000));
    raw.context.TryCancel();
  }
  ExpectUnharmed(server);
}

TEST_P(ReadAheadOn, StreamsBeyondItsShareGoWithout) {
  TestServer::Options options;
  options.rpc.receive.quota = 24 * kMiB;  // 1.1 MiB for messages ahead: one stream's at a time
  TestServer server(device(), options);
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 6; ++seed)
    threads.emplace_back([&, seed] {
      const std::string data = Floats(kTwoMessagesBytes / 4, seed);
      for (int turn = 0; turn < 4; ++turn) {
        RawStream raw(server.Connect());
        ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, kTwoMessages)));
        ASSERT_TRUE(raw.SendAll(0, data, turn % 2 ? kMiB : 100'000));
        const auto status = raw.End();
        EXPECT_TRUE(status.ok()) << status.error_message();
        EXPECT_TRUE(raw.output == HostTranspose(data, DType::kF32, kTwoMessages));
      }
    });
  for (auto& thread : threads) thread.join();
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing
