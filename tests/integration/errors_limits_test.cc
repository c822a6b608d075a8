// Sizes, budgets, queue and deadlines: what is right but too much, or too late.
#include "tests/integration/helpers.h"
#include "tests/unit/engine_time_testing.h"
#include "tests/unit/held_device.h"

namespace tilewire::testing {
namespace {

const std::vector<int64_t> kBulk{1 << 18};  // f32: 1 MiB an operand, more than a small job

TEST(UnarySize, MessagesOverFourMebibytesAreRefused) {
  TestServer server;
  const auto stub = v1::Kernels::NewStub(server.Connect());
  const auto call = [&](int64_t count) {
    const std::string data(count * 4, '\0');
    grpc::ClientContext context;
    v1::RmseResponse response;
    return stub->Rmse(&context, RmseCall({count}, data, data), &response);
  };
  EXPECT_TRUE(call((2 << 18) - 64).ok());
  ExpectError(call(2 << 18), kExhausted, "LIMIT", "request", "4194342 bytes",
              "4194304; larger arrays go through Execute");
  ExpectError(call(3 << 18), kExhausted, "LIMIT", "request", "6291494 bytes",
              "4194304; larger arrays go through Execute");
  EXPECT_EQ(call(16 << 18).error_code(), kExhausted) << "32 MiB: gRPC's own refusal, on record all the same";
  EXPECT_EQ(server.engine().stats().jobs_admitted, 1u);
  server.ExpectIdle();
  int refused = 0;
  for (const auto& record : server.observer().records())
    refused += record.method == "Kernels.Rmse" && record.status.reason() == "LIMIT" && record.bytes_in == 0;
  EXPECT_EQ(refused, 3);
  ExpectUnharmed(server);
}

TEST(UnarySize, LargeRepliesPointToExecute) {
  TestServer server;
  const auto stub = v1::Kernels::NewStub(server.Connect());
  const auto call = [&](int64_t bytes, bool trace) {
    v1::TransposeRequest request;
    SetSpec(request.mutable_input()->mutable_spec(), v1::DTYPE_U8, {bytes});
    request.mutable_input()->set_data(std::string(bytes, 'x'));
    request.mutable_options()->set_trace(trace);
    grpc::ClientContext context;
    v1::TransposeResponse response;
    const auto status = stub->Transpose(&context, request, &response);
    if (status.ok()) {
      EXPECT_LE(response.ByteSizeLong(), 4u << 20);
    }
    return status;
  };
  EXPECT_TRUE(call((4 << 20) - 4096, false).ok());
  ExpectError(call((4 << 20) - 4095, false), kExhausted, "USE_EXECUTE", "result", "4190209", "4190208");
  ExpectError(call((4 << 20) - 4096, true), kExhausted, "USE_EXECUTE", "result", "4190208", "3928064");
  EXPECT_TRUE(call(3'928'064, true).ok());
  ExpectUnharmed(server);
}

class Budget : public OnBoth {};
TILEWIRE_ON_BOTH(Budget);

TEST_P(Budget, MoreThanTheWholeIsALimit) {
  TestServer::Options options;
  options.engine.device_bytes = 16 << 20;
  TestServer server(device(), options);
  const auto channel = server.Connect();
  for (const int64_t count : {int64_t{4} << 20, int64_t{1} << 40, int64_t{1} << 57}) {
    RawStream raw(channel);
    EXPECT_FALSE(raw.Open(TransposeOpen(v1::DTYPE_F32, {count, 2}))) << count;
    ExpectError(raw.End(), kExhausted, "LIMIT", "device bytes of the request", "*",
                "at most 14680064 (--device-bytes)");
    EXPECT_EQ(raw.context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 0u);
  }
  EXPECT_EQ(server.engine().stats().jobs_refused_limit, 3u);
  ExpectUnharmed(server);
}

TEST_P(Budget, StagingThatNeverFitsIsALimit) {
  if (!staged()) GTEST_SKIP() << "needs staging";
  TestServer::Options options;
  options.engine.block_bytes = 1 << 20;
  options.engine.pinned_bytes = 4 << 20;
  TestServer server(device(), options);
  RawStream raw(server.Connect());
  EXPECT_FALSE(raw.Open(TransposeOpen(v1::DTYPE_F32, {1 << 20, 2})));
  ExpectError(raw.End(), kExhausted, "LIMIT", "staging bytes of the request", "6291456",
              "at most 3670016 (--pinned-bytes, --block-bytes)");
  ExpectUnharmed(server);
}

class Queue : public OnBoth {
 protected:
  static TestServer::Options OneAtATime(int queue_length, double queue_seconds = 60) {
    TestServer::Options options;
    options.engine.max_in_flight = 1;
    options.engine.queue_length = queue_length;
    options.engine.queue_seconds = queue_seconds;
    return options;
  }
  /// Opens an RMSE over kBulk and sends its first byte.
  static bool Begin(RawStream& raw) {
    return raw.OpenAndSend(RmseOpen(v1::DTYPE_F32, kBulk), Floats(kBulk[0], 1));
  }
  /// The same, and waits until it is what the server does.
  static bool Runs(TestServer& server, RawStream& raw) { return Begin(raw) && server.InFlight(1); }
  static std::string Pushback(const grpc::ClientContext& context) {
    const auto& trailing = context.GetServerTrailingMetadata();
    const auto found = trailing.find("grpc-retry-pushback-ms");
    return found == trailing.end() ? "" : std::string(found->second.data(), found->second.size());
  }
  /// The rest of an RMSE that has begun.
  static void ExpectFinishes(RawStream& raw) {
    const std::string a = Floats(kBulk[0], 1), b = Floats(kBulk[0], 2);
    raw.SendAll(0, a, 1 << 20, 1);
    raw.SendAll(1, b);
    const auto status = raw.End();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(raw.output, HostRmse(a, b, DType::kF32, kBulk));
  }
};
TILEWIRE_ON_STAGED(Queue);

TEST_P(Queue, FullIsBusy) {
  TestServer server(device(), OneAtATime(1));
  RawStream running(server.Connect()), waiting(server.Connect()), refused(server.Connect());
  ASSERT_TRUE(Runs(server, running));
  ASSERT_TRUE(Begin(waiting)) << "there is a place in the queue for it";
  EXPECT_TRUE(server.Queued(1));
  EXPECT_FALSE(refused.Open(RmseOpen(v1::DTYPE_F32, kBulk)));
  ExpectError(refused.End(), kExhausted, "BUSY");
  EXPECT_EQ(Pushback(refused.context), "250");
  {
    grpc::ClientContext context;
    v1::RmseResponse response;
    ExpectError(
        v1::Kernels::NewStub(server.Connect())->Rmse(&context, RmseCall({1}, "1234", "1234"), &response),
        kExhausted, "BUSY");
    EXPECT_EQ(Pushback(context), "250");
  }
  ExpectFinishes(running);
  ExpectFinishes(waiting);
  ExpectUnharmed(server);
}

TEST_P(Queue, TooSlowIsBusy) {
  ManualTime time;
  auto options = OneAtATime(4, 10);
  options.engine.time = &time;
  options.rpc.least_rate = 0;  // nobody is to be ended for being slow
  TestServer server(device(), options);
  RawStream running(server.Connect()), waiting(server.Connect()), behind(server.Connect());
  ASSERT_TRUE(Runs(server, running));
  ASSERT_TRUE(waiting.Open(RmseOpen(v1::DTYPE_F32, kBulk)));
  std::thread waiter([&] { EXPECT_FALSE(Begin(behind)) << "not even an order"; });
  const auto expect_bounded = [&] {
    EXPECT_TRUE(server.Queued(1));
    engine::testing::Pass(time, server.engine().timer(), std::chrono::seconds(9));
    EXPECT_EQ(server.engine().stats().jobs_queued, 1u);
    engine::testing::Pass(time, server.engine().timer(), std::chrono::seconds(1));
    EXPECT_EQ(server.engine().stats().jobs_queued, 0u);
  };
  expect_bounded();
  waiter.join();
  ASSERT_TRUE(waiting.Send(0, 0, "x"));  // its order is good for as long as it is not idle
  expect_bounded();
  for (RawStream* late : {&waiting, &behind}) {
    ExpectError(late->End(), kExhausted, "BUSY");
    EXPECT_EQ(Pushback(late->context), "250");
  }
  ExpectFinishes(running);
  ExpectUnharmed(server);
}

TEST_P(Queue, DeadlinePassesAndNothingIsLaunched) {
  auto faults = std::make_shared<engine::Faults>();
  TestServer server(engine::MakeFaulty(device(), faults), OneAtATime(4));
  RawStream running(server.Connect());
  ASSERT_TRUE(Runs(server, running));
  {
    // Connected before, so that the calls are sure to reach the server in their time.
    const auto channel = server.Connect();
    ASSERT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::minutes(1)));
    RawStream late(channel, 3);
    EXPECT_TRUE(Begin(late));
    EXPECT_EQ(late.End().error_code(), kLate);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(3));
    v1::RmseResponse response;
    EXPECT_EQ(v1::Kernels::NewStub(channel)
                  ->Rmse(&context, RmseCall({4}, Floats(4, 1), Floats(4, 2)), &response)
                  .error_code(),
              kLate);
  }
  EXPECT_TRUE(server.Queued(0));
  EXPECT_EQ(server.engine().stats().jobs_admitted, 1u);
  for (int kind = 0; kind < engine::kSubmittedCount; ++kind)
    EXPECT_EQ(faults->count(static_cast<engine::Submitted>(kind)), 0);
  EXPECT_TRUE(Eventually([&] {
    int late = 0;
    for (const auto& record : server.observer().records()) late += record.status.reason() == "DEADLINE";
    return late == 2;
  }));
  ExpectFinishes(running);
  ExpectUnharmed(server);
}

TEST_P(Queue, LargeUnaryCallsWaitOrAreToldToComeBack) {
  auto options = OneAtATime(64, 60);
  options.rpc.receive.quota = 128 << 20;
  TestServer server(device(), options);
  RawStream running(server.Connect());
  ASSERT_TRUE(Runs(server, running));
  constexpr int kCalls = 24;  // 96 MB, more than waiting calls may hold
  const std::string data = Floats(500'000, 3);
  const v1::RmseRequest request = RmseCall({500'000}, data, data);
  std::vector<std::thread> callers;
  std::atomic<int> good{0}, busy{0};
  for (int i = 0; i < kCalls; ++i) {
    callers.emplace_back([&] {
      grpc::ClientContext context;
      v1::RmseResponse response;
      const auto status = v1::Kernels::NewStub(server.Connect())->Rmse(&context, request, &response);
      if (!status.ok()) {
        ExpectError(status, kExhausted, "BUSY");
        EXPECT_EQ(Pushback(context), "250");
        ++busy;
      } else {
        good += response.result().data() == std::string(8, '\0');
      }
    });
    EXPECT_TRUE(
        Eventually([&] { return busy + static_cast<int>(server.engine().stats().jobs_queued) == i + 1; }));
  }
  ExpectFinishes(running);
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(good, 6) << "32 MiB of calls may wait, 26 of one caller";
  EXPECT_EQ(busy, 18);
  ExpectUnharmed(server);
}

TEST_P(Queue, BurstBeyondTheReceiveQuotaIsSurvived) {
  auto options = OneAtATime(64, 60);
  options.rpc.receive.quota = 16 << 20;
  TestServer server(device(), options);
  const std::string data = Floats(500'000, 3);
  const v1::RmseRequest request = RmseCall({500'000}, data, data);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> callers;
    for (int i = 0; i < 24; ++i)
      callers.emplace_back([&] {
        grpc::ClientContext context;
        v1::RmseResponse response;
        const auto status = v1::Kernels::NewStub(server.Connect())->Rmse(&context, request, &response);
        // gRPC itself ends streams (RESOURCE_EXHAUSTED) and connections (UNAVAILABLE); both are worth a
        // retry.
        EXPECT_TRUE(status.ok() || status.error_code() == kExhausted ||
                    status.error_code() == grpc::StatusCode::UNAVAILABLE)
            << status.error_message();
      });
    for (auto& caller : callers) caller.join();
    ExpectUnharmed(server);  // later callers; streams of the moment gRPC may have ended
  }
}

TEST_P(Queue, DeadlineOnASlowDeviceKeepsItsMemoryUntilTheDeviceIsDone) {
  const auto gate = std::make_shared<Gate>();
  TestServer server(HeldBy(gate)(device()), {});
  gate->Close();
  const std::string data = Floats(kBulk[0], 1);
  RawStream raw(server.Connect(), 3);
  EXPECT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, {512, 512})));
  raw.SendAll(0, data);
  EXPECT_EQ(raw.End().error_code(), kLate);
  EXPECT_EQ(server.engine().stats().jobs_in_flight, 1u) << "the device is not done";
  EXPECT_GT(server.engine().stats().device_bytes_in_use, 0u);
  gate->Open();
  server.ExpectIdle();
  EXPECT_EQ(server.observer().records().at(0).status.reason(), "DEADLINE");
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing
