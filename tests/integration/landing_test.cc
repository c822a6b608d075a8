// Streams that are open before their jobs have memory: what they hold, whom they keep waiting, and that
// nobody is blamed for the server's time. How a wait ends otherwise is in cancel_test.cc, drain_test.cc and
// errors_limits_test.cc.
#include "tests/integration/arrays.h"
#include "tests/integration/join.h"
#include "tests/integration/own_time.h"

namespace tilewire::testing {
namespace {

const std::vector<int64_t> kMatrix{512, 512};  // f32: 1 MiB

class Landing : public OnBoth {
 protected:
  /// One job at a time, by time of the test's own.
  TestServer::Options OneAtATime() {
    auto options = time_.Options();
    options.engine.max_in_flight = 1;
    return options;
  }
  static std::string Matrix(uint64_t seed) { return Floats(512 * 512, seed); }
  static void ExpectTransposed(RawStream& raw, const std::string& data) {
    const auto status = raw.Drain();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(raw.output == HostTranspose(data, DType::kF32, kMatrix));
  }
  /// A job of no call, so that nobody is late with it, that has the only place while it is kept.
  static std::shared_ptr<engine::Job> Hold(TestServer& server) {
    std::shared_ptr<engine::Job> held;
    server.engine().Open(engine::MakePass(MakeSpec(DType::kF32, kMatrix).value(), "get"), {},
                         [&](auto job) { held = job.value_or(nullptr); });
    EXPECT_NE(held, nullptr);
    return held;
  }

  OwnTimeOfServer time_;
};
TILEWIRE_ON_BOTH(Landing);

/// D4: as many as may run, each of whose jobs would take most of the device.
TEST_P(Landing, StreamsThatSendNothingHoldNothingAndDelayNobody) {
  auto options = time_.Options();
  options.engine.device_bytes = 32 << 20;
  options.rpc.identity_header = "x-user";
  TestServer server(device(), options);
  std::vector<std::unique_ptr<RawStream>> silent;
  for (int i = 0; i < 64; ++i) {
    RawStream& raw = *silent.emplace_back(std::make_unique<RawStream>(server.Connect(), 1e6));
    raw.context.AddMetadata("x-user", "mallory");
    ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, {2560, 1024}))) << i;
  }
  const EngineStats stats = server.engine().stats();
  EXPECT_EQ(stats.jobs_open, 64u);
  EXPECT_EQ(stats.device_bytes_in_use, 0u);
  EXPECT_EQ(stats.pinned_bytes_in_use, 0u);
  EXPECT_EQ(stats.jobs_in_flight, 0u);
  EXPECT_EQ(stats.jobs_queued, 0u);
  for (int i = 0; i < 3; ++i) {
    const std::string data = Floats(2560 * 1024, static_cast<uint64_t>(i));
    RawStream honest(server.Connect());
    honest.context.AddMetadata("x-user", "ann");
    ASSERT_TRUE(honest.Open(TransposeOpen(v1::DTYPE_F32, {2560, 1024})));
    ASSERT_TRUE(honest.SendAll(0, data));
    const auto status = honest.End();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(honest.output == HostTranspose(data, DType::kF32, {2560, 1024}));
  }
  ExpectGoodCalls(server);
  EXPECT_EQ(server.engine().stats().jobs_open, 64u) << "while all of them were there";
  for (auto& raw : silent) raw->context.TryCancel();
  ExpectUnharmed(server);
}

TEST_P(Landing, WhatIsSentAtOnceWaitsAndComesOutRight) {
  TestServer server(device(), OneAtATime());
  auto running = Hold(server);
  RawStream raw(server.Connect(), OwnTimeOfServer::kDeadline);
  raw.Start();
  v1::ExecuteRequest request;
  *request.mutable_open() = TransposeOpen(v1::DTYPE_F32, kMatrix);
  const std::string data = Matrix(2);
  std::thread client([&] {  // which does not look at Opened, and sends small chunks
    raw.stream->Write(request);
    raw.SendAll(0, data, 10'000);
    raw.stream->WritesDone();
  });
  EXPECT_TRUE(server.Queued(1));
  EXPECT_EQ(server.engine().stats().jobs_open, 0u);
  time_.Pass(server, 24);  // three times as long as a client may be idle
  running.reset();
  ExpectTransposed(raw, data);
  client.join();
  EXPECT_GT(raw.result.timing().queue_us(), 0);
  ExpectUnharmed(server);
}

TEST_P(Landing, StreamsJoinBeforeThereIsMemoryAndNoneIsIdleMeanwhile) {
  auto options = OneAtATime();
  options.rpc.least_rate = 64 << 10;
  TestServer server(device(), options);
  auto running = Hold(server);
  const std::string data = Floats(700'000, 5);
  RawStream first(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(first.Open(Striped(TransposeOpen(v1::DTYPE_F32, kShape), 3)));
  JoinedStream early(server.Connect(), OwnTimeOfServer::kDeadline),
      late(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(early.Join(first.opened.job())) << "before anything has landed";
  std::map<uint64_t, std::string> pieces;
  std::mutex mutex;
  const auto carry = [&](RawStream& raw, uint64_t number) {
    std::thread reader([&] {
      const auto status = DrainPieces(raw, &pieces, &mutex);
      EXPECT_TRUE(status.ok()) << number << ": " << status.error_message();
    });
    for (uint64_t block = number; block < kBlocks; block += 3)
      raw.SendAll(0, data, kBlock, block * kBlock, std::min((block + 1) * kBlock, kBytes));
    raw.stream->WritesDone();
    reader.join();
  };
  std::thread second([&] { carry(early, 1); });  // the job lands with what a joined stream brings
  EXPECT_TRUE(server.Queued(1));
  ASSERT_TRUE(late.Join(first.opened.job())) << "while it waits";
  time_.Pass(server, 24);
  EXPECT_FALSE(OwnTimeOfServer::GivenUp(server, first))
      << "its other streams wait for their clients, but for nothing";
  running.reset();
  std::thread third([&] { carry(late, 2); });
  carry(first, 0);
  second.join();
  third.join();
  std::string output;
  for (const auto& [offset, bytes] : pieces) output += bytes;
  EXPECT_TRUE(output == HostTranspose(data, DType::kF32, kShape));
  EXPECT_EQ(first.result.timing().streams(), 3u);
  ExpectUnharmed(server);
}

TEST_P(Landing, SilenceAfterOpenedIsTheClients) {
  TestServer server(device(), time_.Options());
  RawStream raw(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, kMatrix)));
  EXPECT_EQ(server.engine().stats().jobs_open, 1u);
  ASSERT_TRUE(OwnTimeOfServer::OpenedIsTaken(server, raw));
  ExpectError(time_.DrainWhileItPasses(server, raw), kLate, "IDLE");
  ExpectUnharmed(server);
}

/// Whoever is slow to send his first bytes keeps those waiting who have no order yet, and nobody else.
TEST_P(Landing, SilentStreamsGiveWayToThoseThatWaitForAnOrder) {
  auto options = OneAtATime();
  options.rpc.least_rate = 64 << 10;
  options.rpc.idle_seconds = 1000;
  TestServer server(device(), options);
  RawStream silent(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(silent.Open(TransposeOpen(v1::DTYPE_F32, kMatrix)));
  ASSERT_TRUE(OwnTimeOfServer::OpenedIsTaken(server, silent));
  time_.Pass(server, 8);
  EXPECT_FALSE(OwnTimeOfServer::GivenUp(server, silent)) << "nobody needs what it has";
  const std::string data = Matrix(3);
  RawStream waiting(server.Connect(), OwnTimeOfServer::kDeadline);
  std::thread client([&] {
    EXPECT_TRUE(waiting.Open(TransposeOpen(v1::DTYPE_F32, kMatrix)));
    waiting.SendAll(0, data);
    waiting.stream->WritesDone();
    ExpectTransposed(waiting, data);
  });
  EXPECT_TRUE(server.Queued(1));
  ExpectError(time_.DrainWhileItPasses(server, silent), kLate, "IDLE");
  client.join();
  ExpectUnharmed(server);
}

TEST_P(Landing, ArraysThatArePutTakeTheirMemoryWithTheFirstBytes) {
  TestServer server(device(), time_.Options());
  const std::string data = Matrix(4);
  v1::Open open;
  open.mutable_put();
  SetSpec(open.add_operands(), v1::DTYPE_F32, kMatrix);
  RawStream raw(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(raw.Open(open));
  EXPECT_EQ(server.engine().stats().device_bytes_in_use, 0u);
  ASSERT_TRUE(raw.SendAll(0, data));
  const auto status = raw.End();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(server.engine().stats().arrays_stored, 1u);
  v1::DeleteRequest remove;
  remove.set_array(raw.result.results(0).array());
  grpc::ClientContext context;
  v1::DeleteResponse removed;
  EXPECT_TRUE(v1::Arrays::NewStub(server.Connect())->Delete(&context, remove, &removed).ok());
  ExpectUnharmed(server);
}

TEST_P(Landing, AWrongFirstMessageTakesNothing) {
  TestServer server(device(), time_.Options());
  RawStream raw(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, kMatrix)));
  ASSERT_TRUE(raw.Send(0, 0, ""));
  ExpectError(raw.Drain(), kInvalid, "BAD_VALUE", "chunk.data");
  RawStream twice(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(twice.Open(TransposeOpen(v1::DTYPE_F32, kMatrix)));
  v1::ExecuteRequest request;
  *request.mutable_open() = TransposeOpen(v1::DTYPE_F32, kMatrix);
  ASSERT_TRUE(twice.stream->Write(request));
  ExpectError(twice.Drain(), kInvalid, "BAD_MESSAGE");
  RawStream empty(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(empty.Open(TransposeOpen(v1::DTYPE_F32, kMatrix)));
  ExpectError(empty.End(), kInvalid, "BYTES_MISSING");
  server.ExpectIdle();
  EXPECT_EQ(server.engine().stats().jobs_admitted, 0u);
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing
