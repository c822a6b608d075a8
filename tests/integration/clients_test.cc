// Clients that are right but awkward, alone and side by side.
#include <random>

#include "tests/integration/helpers.h"
#include "tests/integration/own_time.h"

namespace tilewire::testing {
namespace {

class Clients : public OnBoth {};
TILEWIRE_ON_BOTH(Clients);

TEST_P(Clients, WriteEverythingBeforeReadingAnything) {
  TestServer server(device(), {});
  const std::vector<int64_t> shape{50, 100, 1000};  // 20 MB
  const std::string data = Floats(5'000'000, 1);
  // With the leading axis kept, output waits on the way while input still comes in.
  for (const std::vector<int>& axes : {std::vector<int>{0, 2, 1}, std::vector<int>{2, 1, 0}}) {
    RawStream raw(server.Connect());
    ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, shape, axes)));
    ASSERT_TRUE(raw.SendAll(0, data));
    const auto status = raw.End();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(raw.output == HostTranspose(data, DType::kF32, shape, axes));
  }
  ExpectUnharmed(server);
}

TEST_P(Clients, OneThatNeverReadsHindersNobody) {
  TestServer server(device(), {});
  const std::string data = Floats(5'000'000, 1);
  RawStream deaf(server.Connect());
  ASSERT_TRUE(deaf.Open(TransposeOpen(v1::DTYPE_F32, {5000, 1000})));
  ASSERT_TRUE(deaf.SendAll(0, data));
  deaf.stream->WritesDone();
  for (uint64_t i = 0; i < 5; ++i) ExpectGoodCalls(server, i);
  EXPECT_TRUE(Eventually([&] { return server.engine().stats().jobs_in_flight == 1; })) << "it still waits";
  const auto status = deaf.Drain();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(deaf.output == HostTranspose(data, DType::kF32, {5000, 1000}));
  ExpectUnharmed(server);
}

TEST_P(Clients, StalledUploadersHinderNobody) {
  TestServer server(device(), {});
  const std::string data = Floats(250'000, 1);
  std::vector<std::unique_ptr<RawStream>> stalled;
  for (int i = 0; i < 20; ++i) {
    RawStream& raw = *stalled.emplace_back(std::make_unique<RawStream>(server.Connect()));
    ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, {250'000})));
    ASSERT_TRUE(raw.SendAll(0, data, 1 << 16, 0, 40'000 * i));
  }
  for (uint64_t i = 0; i < 3; ++i) ExpectGoodCalls(server, i);
  for (auto& raw : stalled) raw->context.TryCancel();
  ExpectUnharmed(server);
}

TEST_P(Clients, HalfCloseLate) {
  TestServer server(device(), {});
  const std::string a = Floats(100'000, 1), b = Floats(100'000, 2);
  RawStream raw(server.Connect());
  ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, {100'000})));
  raw.SendAll(0, a);
  raw.SendAll(1, b);
  ASSERT_TRUE(HasArrived(server, raw, a.size() + b.size()));
  const auto status = raw.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(raw.output, HostRmse(a, b, DType::kF32, {100'000}));
  ExpectUnharmed(server);
}

TEST_P(Clients, ChunksMayFollowOpenAtOnce) {
  TestServer server(device(), {});
  const std::string a = Floats(600'000, 1), b = Floats(600'000, 2);
  RawStream raw(server.Connect());
  raw.Start();
  v1::ExecuteRequest request;
  *request.mutable_open() = RmseOpen(v1::DTYPE_F32, {600'000});
  raw.stream->Write(request);
  std::thread writer([&] {
    raw.SendAll(0, a, 70'001);
    raw.SendAll(1, b, 70'001);
    raw.stream->WritesDone();
  });
  const auto status = raw.Drain();
  writer.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(raw.output, HostRmse(a, b, DType::kF32, {600'000}));
  ExpectUnharmed(server);
}

TEST_P(Clients, SmallCallsPassAQueueOfBulkJobs) {
  TestServer::Options options;
  options.engine.max_in_flight = 4;  // three of bulk
  TestServer server(device(), options);
  std::vector<std::unique_ptr<RawStream>> running, waiting;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(running.emplace_back(std::make_unique<RawStream>(server.Connect()))
                    ->OpenAndSend(RmseOpen(v1::DTYPE_F32, {1 << 18})));
  ASSERT_TRUE(server.InFlight(3));
  for (int i = 0; i < 5; ++i) {
    RawStream& raw = *waiting.emplace_back(std::make_unique<RawStream>(server.Connect()));
    threads.emplace_back([&raw] { raw.OpenAndSend(RmseOpen(v1::DTYPE_F32, {1 << 18})); });
  }
  ASSERT_TRUE(Eventually([&] { return server.engine().stats().jobs_queued == 5; }));
  const auto stub = v1::Kernels::NewStub(server.Connect());
  for (uint64_t i = 0; i < 50; ++i) {
    const std::string a = Floats(1000, i), b = Floats(1000, i + 1);
    grpc::ClientContext context;
    v1::RmseResponse response;
    const auto status = stub->Rmse(&context, RmseCall({1000}, a, b), &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.result().data(), HostRmse(a, b, DType::kF32, {1000}));
  }
  EXPECT_EQ(server.engine().stats().jobs_queued, 5u) << "bulk still waits";
  for (auto& raw : running) raw->context.TryCancel();
  for (auto& raw : waiting) raw->context.TryCancel();
  for (auto& thread : threads) thread.join();
  ExpectUnharmed(server);
}

/// Random calls one after the other, each answer compared with the host kernels.
void RandomCalls(const TestServer& server, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto channel = server.Connect();
  for (int call = 0; call < 6; ++call) {
    std::vector<int64_t> shape;
    const int rank = 1 + static_cast<int>(random() % 4);
    int64_t count = 1;
    for (int i = 0; i < rank; ++i) {
      const int64_t most =
          std::max<int64_t>(1, std::min<int64_t>(400'000 / count, rank == 1 ? 400'000 : 300));
      shape.push_back(1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)));
      count *= shape.back();
    }
    std::vector<int> axes(rank);
    for (int i = 0; i < rank; ++i) axes[i] = i;
    std::shuffle(axes.begin(), axes.end(), random);
    const std::string a = Floats(count, random()), b = Floats(count, random());
    const bool transpose = random() % 2;
    if (!transpose) axes.resize(random() % (rank + 1));
    const size_t step = 1 + random() % 200'000;
    RawStream raw(channel);
    ASSERT_TRUE(raw.Open(transpose ? TransposeOpen(v1::DTYPE_F32, shape, axes)
                                   : RmseOpen(v1::DTYPE_F32, shape, axes)));
    std::thread writer([&] {
      EXPECT_TRUE(raw.SendAll(0, a, std::max<size_t>(step, a.size() / 500)));
      if (!transpose) {
        EXPECT_TRUE(raw.SendAll(1, b, std::max<size_t>(step, a.size() / 500)));
      }
      raw.stream->WritesDone();
    });
    const auto status = raw.Drain();
    writer.join();
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(raw.output == (transpose ? HostTranspose(a, DType::kF32, shape, axes)
                                         : HostRmse(a, b, DType::kF32, shape, axes)));
  }
}

TEST_P(Clients, SixteenAtOnceWithRandomShapes) {
  TestServer server(device(), {});
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 16; ++seed)
    threads.emplace_back([&server, seed] { RandomCalls(server, seed); });
  for (auto& thread : threads) thread.join();
  ExpectUnharmed(server);
}

TEST_P(Clients, SixteenAtOnceWithRoomForTwo) {
  TestServer::Options options;
  options.engine.device_bytes = 12 << 20;
  options.engine.queue_seconds = 60;
  TestServer server(device(), options);
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 16; ++seed)
    threads.emplace_back([&server, seed] { RandomCalls(server, 100 + seed); });
  for (auto& thread : threads) thread.join();
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing
