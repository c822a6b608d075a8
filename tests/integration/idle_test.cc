// Clients that make no progress are given up, and only they.
#include "tests/integration/helpers.h"

namespace tilewire::testing {
namespace {

constexpr auto kLate = grpc::StatusCode::DEADLINE_EXCEEDED;
const std::vector<int64_t> kShape{1000, 500};  // f32: 2 MB

class Idle : public OnBoth {
 protected:
  /// Short where the client is to be given up, and yet longer than a busy machine keeps a good client
  /// waiting.
  static TestServer::Options Impatient(double seconds = 2.5) {
    TestServer::Options options;
    options.rpc.idle_seconds = seconds;
    return options;
  }
  /// What the server noted about the only Execute call so far.
  static void ExpectIdleRecord(TestServer& server) {
    for (const auto& record : server.observer().records()) {
      if (record.method != "Kernels.Execute") continue;
      EXPECT_EQ(record.status.reason(), "IDLE");
      return;
    }
    ADD_FAILURE() << "no record";
  }
};
TILEWIRE_ON_BOTH(Idle);

TEST_P(Idle, NoOpenAtAll) {
  TestServer server(device(), Impatient());
  RawStream raw(server.Connect());
  raw.Start();
  const auto status = raw.Drain();  // without half-close
  EXPECT_EQ(status.error_code(), kLate) << status.error_message();
  server.ExpectIdle();
  ExpectIdleRecord(server);
  ExpectUnharmed(server);
}

TEST_P(Idle, OpenThenSilence) {
  TestServer server(device(), Impatient());
  RawStream raw(server.Connect());
  const auto start = std::chrono::steady_clock::now();  // the server's time begins later
  ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, kShape)));
  ExpectError(raw.Drain(), kLate, "IDLE");
  EXPECT_GT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(800));
  server.ExpectIdle();
  ExpectIdleRecord(server);
  ExpectUnharmed(server);
}

TEST_P(Idle, TricklingByteByByteIsNoProgress) {
  TestServer server(device(), Impatient());
  RawStream raw(server.Connect());
  ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, kShape)));
  uint64_t sent = 0;
  while (sent < 5000 && raw.Send(0, sent, "x")) {
    ++sent;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_LT(sent, 5000u) << "25 s of trickling were accepted";
  ExpectError(raw.Drain(), kLate, "IDLE");
  ExpectUnharmed(server);
}

TEST_P(Idle, SlowButSteadyIsProgress) {
  TestServer server(device(), Impatient(4));
  const std::string a = Floats(500'000, 1), b = Floats(500'000, 2);
  RawStream raw(server.Connect());
  ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, kShape)));
  const uint64_t block = raw.opened.block_bytes();
  for (uint64_t at = 0; at < 8 * block; at += block) {  // some 4.8 s, a block every 0.6 s
    ASSERT_TRUE(raw.SendAll(0, a, block, at, at + block));
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
  }
  ASSERT_TRUE(raw.SendAll(0, a, block, 8 * block));
  ASSERT_TRUE(raw.SendAll(1, b));
  const auto status = raw.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(raw.output, HostRmse(a, b, DType::kF32, kShape));
  ExpectUnharmed(server);
}

TEST_P(Idle, SlowDeviceIsNotTheClientsFault) {
  TestServer server(engine::MakeSlow(device(), {.launch = std::chrono::milliseconds(3000)}), Impatient());
  const std::string a = Floats(500'000, 1);
  RawStream raw(server.Connect());
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, kShape)));
  ASSERT_TRUE(raw.SendAll(0, a));
  const auto status = raw.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(raw.output == HostTranspose(a, DType::kF32, kShape));
  ExpectUnharmed(server);
}

TEST_P(Idle, WaitingInTheQueueIsNotTheClientsFault) {
  // Patient enough for a client on a busy machine; a kernel takes longer still.
  auto options = Impatient();
  options.engine.max_in_flight = 1;
  TestServer server(engine::MakeSlow(device(), {.launch = std::chrono::milliseconds(3200)}), options);
  const std::string a = Floats(500'000, 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      RawStream raw(server.Connect());
      EXPECT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, kShape)));
      EXPECT_TRUE(raw.SendAll(0, a));
      const auto status = raw.End();
      EXPECT_TRUE(status.ok()) << status.error_message();
    });
  for (auto& thread : threads) thread.join();
  ExpectUnharmed(server);
}

TEST_P(Idle, ClientThatNeverReadsLosesItsStreamAndTheMemoryReturns) {
  TestServer server(device(), Impatient());
  const std::vector<int64_t> shape{5000, 1000};  // 20 MB, more than flow control lets through
  const std::string data = Floats(5'000'000, 1);
  RawStream raw(server.Connect());
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, shape)));
  ASSERT_TRUE(raw.SendAll(0, data));
  raw.stream->WritesDone();
  server.ExpectIdle();  // without anybody having read anything
  ExpectIdleRecord(server);
  EXPECT_EQ(raw.Drain().error_code(), kLate);
  ExpectUnharmed(server);
}

TEST_P(Idle, ClientThatReadsSlowlyGetsEverything) {
  auto options = Impatient(4);  // windows of some megabytes open in large steps
  options.engine.block_bytes = 1 << 20;
  TestServer server(device(), options);
  const std::vector<int64_t> shape{5000, 1000};
  const std::string data = Floats(5'000'000, 1);
  RawStream raw(server.Connect());
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, shape)));
  ASSERT_TRUE(raw.SendAll(0, data));
  raw.stream->WritesDone();
  v1::ExecuteResponse response;
  for (int i = 0; i < 18; ++i) {
    ASSERT_TRUE(raw.stream->Read(&response));
    raw.output += response.chunk().data();
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
  const auto status = raw.Drain();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(raw.output == HostTranspose(data, DType::kF32, shape));
  ExpectUnharmed(server);
}

TEST_P(Idle, LateHalfCloseWithinTheTimeIsFine) {
  TestServer server(device(), Impatient(4));
  const std::string a = Floats(500'000, 1);
  RawStream raw(server.Connect());
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, kShape)));
  ASSERT_TRUE(raw.SendAll(0, a));
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  const auto status = raw.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  ExpectUnharmed(server);
}

TEST_P(Idle, NoHalfCloseAtAll) {
  TestServer server(device(), Impatient());
  const std::string a = Floats(500'000, 1);
  RawStream raw(server.Connect());
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, kShape)));
  ASSERT_TRUE(raw.SendAll(0, a));
  ExpectError(raw.Drain(), kLate, "IDLE");
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing
