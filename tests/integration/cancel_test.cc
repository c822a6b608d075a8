// Clients that go away at any moment: every lease returns, and memory is not reused before the device is
// done.
#include <cstdio>
#include <random>

#include "tests/integration/helpers.h"
#include "tests/unit/sanitized.h"

namespace tilewire::testing {
namespace {

class Cancel : public OnBoth {};
TILEWIRE_ON_BOTH(Cancel);

/// Resident bytes of this process.
int64_t ResidentBytes() {
  long pages = 0, resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * 4096;
}

/// One client that leaves after a random number of messages, in a random way.
void LeaveSomewhere(const TestServer& server, const std::string& data, uint64_t seed) {
  std::mt19937_64 random(seed);
  const int64_t rows = 1 + static_cast<int64_t>(random() % 500);
  const uint64_t bytes = static_cast<uint64_t>(rows) * 4000;
  const bool transpose = random() % 2;
  RawStream raw(server.Connect());
  const auto leave = [&] {
    if (random() % 3) raw.context.TryCancel();  // else the context's end cancels, or its connection's does
  };
  if (random() % 10 == 0) {
    raw.Start();
    v1::ExecuteRequest request;
    *request.mutable_open() = RmseOpen(v1::DTYPE_F32, {rows, 1000});
    if (random() % 2) raw.stream->Write(request);
    return leave();
  }
  if (!raw.Open(transpose ? TransposeOpen(v1::DTYPE_F32, {rows, 1000})
                          : RmseOpen(v1::DTYPE_F32, {rows, 1000})))
    return leave();
  const uint64_t step = 1 + random() % 100'000, most = random() % (2 * bytes + 1);
  uint64_t sent = 0;
  for (uint32_t operand = 0; operand < (transpose ? 1u : 2u); ++operand)
    for (uint64_t at = 0; at < bytes; at += step) {
      if (sent >= most) return leave();
      const uint64_t count = std::min(step, bytes - at);
      if (!raw.Send(operand, at, std::string_view(data).substr(at, count))) return leave();
      sent += count;
    }
  v1::ExecuteResponse response;
  if (random() % 2) {
    raw.stream->WritesDone();
    if (random() % 2) raw.stream->Read(&response);
  }
  leave();
}

TEST_P(Cancel, HundredClientsAtRandomPointsLeaveNothingBehind) {
  TestServer::Options options;
  options.engine.device_bytes = options.engine.pinned_bytes = 48 << 20;  // what pools may keep
  TestServer server(device(), options);
  const std::string data = Floats(500'000, 1);
  std::vector<int64_t> resident;
  for (int round = 0; round < 4; ++round) {  // the first one warms pools and arenas up
    std::vector<std::thread> threads;
    for (int t = 0; t < 10; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 10; ++i) LeaveSomewhere(server, data, round * 1000 + t * 100 + i);
      });
    for (auto& thread : threads) thread.join();
    server.ExpectIdle();
    resident.push_back(ResidentBytes());
  }
  if (!kSanitized) {
    EXPECT_LT(resident[3], resident[1] + (96 << 20)) << "two rounds lost over 0.4 MiB a client";
  }
  ExpectUnharmed(server);
}

TEST_P(Cancel, WhileQueued) {
  TestServer::Options options;
  options.engine.max_in_flight = 1;
  TestServer server(device(), options);
  RawStream running(server.Connect());
  ASSERT_TRUE(running.OpenAndSend(RmseOpen(v1::DTYPE_F32, {1 << 18})));
  ASSERT_TRUE(server.InFlight(1));
  std::vector<std::unique_ptr<RawStream>> waiting;
  std::atomic<int> opened{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    RawStream& stream = *waiting.emplace_back(std::make_unique<RawStream>(server.Connect()));
    threads.emplace_back([&] {
      opened += stream.OpenAndSend(RmseOpen(v1::DTYPE_F32, {1 << 18}));
      EXPECT_EQ(stream.End().error_code(), grpc::StatusCode::CANCELLED);
    });
  }
  ASSERT_TRUE(server.Queued(8)) << "one for memory, and the others for their order";
  EXPECT_TRUE(Eventually([&] { return opened > 0; }));
  EXPECT_EQ(opened, 1);
  for (auto& stream : waiting) stream->context.TryCancel();
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(Eventually([&] { return server.engine().stats().jobs_queued == 0; }));
  EXPECT_EQ(server.engine().stats().jobs_in_flight, 1u);
  running.context.TryCancel();
  server.ExpectIdle();
  EXPECT_EQ(server.engine().stats().jobs_admitted, 1u);
  int cancelled = 0;
  for (const auto& record : server.observer().records()) cancelled += record.status.reason() == "CANCELLED";
  EXPECT_EQ(cancelled, 9);
  ExpectUnharmed(server);
}

TEST_P(Cancel, WhileOutputStreams) {
  TestServer server(device(), {});
  const std::vector<int64_t> shape{4000, 1000};
  const std::string data = Floats(4'000'000, 1);
  for (int chunks : {0, 1, 3, 9}) {
    RawStream raw(server.Connect());
    ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, shape)));
    ASSERT_TRUE(raw.SendAll(0, data));
    raw.stream->WritesDone();
    v1::ExecuteResponse response;
    for (int i = 0; i < chunks; ++i) {
      ASSERT_TRUE(raw.stream->Read(&response));
      raw.output += response.chunk().data();
    }
    raw.context.TryCancel();
    EXPECT_EQ(raw.Drain().error_code(), grpc::StatusCode::CANCELLED);
    server.ExpectIdle();
  }
  ExpectUnharmed(server);
}

TEST_P(Cancel, ServerEndsWhileItsOutputIsOnTheWay) {
  const std::string data = Floats(4'000'000, 1);
  for (int i = 0; i < 5; ++i) {
    auto server = std::make_unique<TestServer>(device(), TestServer::Options{});
    RawStream raw(server->Connect());
    ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, {4000, 1000})));
    ASSERT_TRUE(raw.SendAll(0, data));
    raw.stream->WritesDone();
    v1::ExecuteResponse response;
    ASSERT_TRUE(raw.stream->Read(&response));
    raw.output = response.chunk().data();
    server.reset();  // slices of its memory still lie in send buffers
    EXPECT_FALSE(raw.Drain().ok());
  }
}

TEST_P(Cancel, MemoryIsNotReusedBeforeTheDeviceIsDone) {
  // Kernels start as late as they may: had the next job got the cancelled one's memory, they would write into
  // it.
  TestServer::Options options;
  options.engine.lanes = 3;
  TestServer server(engine::MakeSlow(device(), {.copy_in = std::chrono::milliseconds(2),
                                                .launch = std::chrono::milliseconds(60),
                                                .jitter = std::chrono::milliseconds(20)}),
                    options);
  const std::vector<int64_t> shape{600, 500};
  for (uint64_t round = 0; round < 8; ++round) {
    const std::string junk(1'200'000, '\xee'), data = Floats(300'000, round);
    {
      RawStream cancelled(server.Connect());
      ASSERT_TRUE(cancelled.Open(TransposeOpen(v1::DTYPE_F32, shape)));
      ASSERT_TRUE(cancelled.SendAll(0, junk));
      cancelled.stream->WritesDone();
      if (round % 2) {
        EXPECT_TRUE(Eventually([&] {
          const auto job = server.engine().Find(cancelled.opened.job(), "anonymous");
          return !job || (*job)->launched();
        }));
      }
      cancelled.context.TryCancel();
    }
    RawStream next(server.Connect());
    ASSERT_TRUE(next.Open(TransposeOpen(v1::DTYPE_F32, shape)));
    ASSERT_TRUE(next.SendAll(0, data));
    const auto status = next.End();
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(next.output == HostTranspose(data, DType::kF32, shape)) << round;
  }
  ExpectUnharmed(server);
}

TEST_P(Cancel, UnaryCallsAtRandomMoments) {
  TestServer server(engine::MakeSlow(device(), {.launch = std::chrono::milliseconds(1)}), {});
  const std::string data = Floats(100'000, 1);
  const v1::RmseRequest request = RmseCall({100'000}, data, data);
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      const auto stub = v1::Kernels::NewStub(server.Connect());
      std::mt19937_64 random(t);
      for (int i = 0; i < 25; ++i) {
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::microseconds(random() % 12'000));
        v1::RmseResponse response;
        const auto status = stub->Rmse(&context, request, &response);
        EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
            << status.error_message();
      }
    });
  for (auto& thread : threads) thread.join();
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing
