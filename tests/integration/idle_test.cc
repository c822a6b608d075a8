// Clients that make no progress are given up, and only they. What counts as progress, and the exact times,
// are in idle_watch_test.cc; here time passes that the tests own, so good clients may be as slow as the
// machine.
#include "tests/integration/helpers.h"
#include "tests/integration/own_time.h"
#include "tests/unit/held_device.h"

namespace tilewire::testing {
namespace {

const std::vector<int64_t> kIdleShape{1000, 500};  // f32: 2 MB
constexpr size_t kIdleBytes = 2'000'000;

class Idle : public OnBoth {
 protected:
  TestServer::Options OwnTime() { return time_.Options(); }
  /// What the server noted about the only Execute call so far.
  static void ExpectIdleRecord(TestServer& server) {
    for (const auto& record : server.observer().records()) {
      if (record.method != "Kernels.Execute") continue;
      EXPECT_EQ(record.status.reason(), "IDLE");
      return;
    }
    ADD_FAILURE() << "no record";
  }

  OwnTimeOfServer time_;
};
TILEWIRE_ON_BOTH(Idle);

TEST_P(Idle, NoOpenAtAll) {
  TestServer server(device(), OwnTime());
  RawStream raw(server.Connect(), OwnTimeOfServer::kDeadline);
  raw.Start();
  time_.PassUntil(server, [&] { return !server.observer().records().empty(); });
  const auto status = raw.Drain();  // without half-close
  EXPECT_EQ(status.error_code(), kLate) << status.error_message();
  server.ExpectIdle();
  ExpectIdleRecord(server);
  ExpectUnharmed(server);
}

TEST_P(Idle, OpenThenSilence) {
  TestServer server(device(), OwnTime());
  RawStream raw(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, kIdleShape)));
  ASSERT_TRUE(OwnTimeOfServer::OpenedIsTaken(server, raw));
  ASSERT_TRUE(raw.Send(0, 0, "x"));  // and a byte, which is no progress
  ASSERT_TRUE(Eventually([&] {
    const auto job = server.engine().Find(raw.opened.job(), "anonymous");
    return job && (*job)->moved() == 1;
  }));
  const TimePoint opened = time_.Now();
  ExpectError(time_.DrainWhileItPasses(server, raw), kLate, "IDLE");
  EXPECT_GE(time_.Now() - opened, OwnTimeOfServer::kIdle);
  server.ExpectIdle();
  ExpectIdleRecord(server);
  ExpectUnharmed(server);
}

TEST_P(Idle, TricklingByteByByteIsNoProgress) {
  TestServer server(device(), OwnTime());
  RawStream raw(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, kIdleShape)));
  uint64_t sent = 0;
  // A look that finds the server busy with a byte starts the time anew, so it is given some to take each.
  for (; !OwnTimeOfServer::GivenUp(server, raw) && raw.Send(0, sent, "x"); ++sent) {
    ExpectGoodCalls(server);
    time_.Pass(server, 1);
  }
  EXPECT_LT(sent, raw.opened.block_bytes());
  ExpectError(raw.Drain(), kLate, "IDLE");
  ExpectUnharmed(server);
}

TEST_P(Idle, SlowButSteadyIsProgress) {
  TestServer server(device(), OwnTime());
  const std::string a = Floats(500'000, 1), b = Floats(500'000, 2);
  RawStream raw(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, kIdleShape)));
  const uint64_t block = raw.opened.block_bytes();
  for (uint64_t at = 0; at < 8 * block; at += block) {
    ASSERT_TRUE(raw.SendAll(0, a, block, at, at + block));
    ASSERT_TRUE(HasArrived(server, raw, at + block));
    time_.Pass(server, 3);  // three times as long as is allowed in all
  }
  ASSERT_TRUE(raw.SendAll(0, a, block, 8 * block));
  ASSERT_TRUE(raw.SendAll(1, b));
  const auto status = raw.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(raw.output, HostRmse(a, b, DType::kF32, kIdleShape));
  ExpectUnharmed(server);
}

/// D4: a job that is fed so slowly that it might last for days, beside one that waits for its place.
TEST_P(Idle, SlowJobsGiveWayToThoseThatWait) {
  auto options = OwnTime();
  options.engine.max_in_flight = 1;
  options.rpc.least_rate = 64 << 10;
  TestServer server(device(), options);
  const std::string a = Floats(500'000, 1);
  RawStream slow(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(slow.Open(TransposeOpen(v1::DTYPE_F32, kIdleShape)));
  const uint64_t block = slow.opened.block_bytes();
  const auto feed = [&](uint64_t i) {
    ASSERT_TRUE(slow.SendAll(0, a, block, i * block, (i + 1) * block));
    ASSERT_TRUE(HasArrived(server, slow, (i + 1) * block));
    time_.Pass(server, 3);  // a block in 15 s
  };
  for (uint64_t i = 0; i < 4; ++i) feed(i);
  EXPECT_FALSE(OwnTimeOfServer::GivenUp(server, slow)) << "nobody needs what it has";

  std::promise<grpc::Status> waiting;
  std::thread other([&] {
    RawStream raw(server.Connect(), OwnTimeOfServer::kDeadline);
    if (raw.Open(TransposeOpen(v1::DTYPE_F32, kIdleShape))) raw.SendAll(0, a);
    waiting.set_value(raw.End());
  });
  ASSERT_TRUE(Eventually([&] { return server.engine().stats().jobs_queued == 1; }));
  ExpectError(time_.DrainWhileItPasses(server, slow), kLate, "IDLE");
  const auto status = waiting.get_future().get();
  other.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  ExpectUnharmed(server);
}

/// Sends everything; the device stands still from before the last block on.
void SendToHeldDevice(TestServer& server, RawStream& raw, Gate& gate, const std::string& data) {
  const uint64_t block = raw.opened.block_bytes(), before = data.size() / block * block;
  ASSERT_TRUE(raw.SendAll(0, data, block, 0, before));
  ASSERT_TRUE(HasArrived(server, raw, before));
  gate.Close();
  ASSERT_TRUE(raw.SendAll(0, data, block, before));
  raw.stream->WritesDone();
  ASSERT_TRUE(HasHalfClosed(server, raw));
}

TEST_P(Idle, SlowDeviceIsNotTheClientsFault) {
  const auto gate = std::make_shared<Gate>();
  TestServer server(std::make_unique<HeldDevice>(device(), gate), OwnTime());
  const std::string a = Floats(500'000, 1);
  RawStream raw(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, kIdleShape)));
  SendToHeldDevice(server, raw, *gate, a);
  time_.Pass(server, 24);
  gate->Open();
  const auto status = raw.Drain();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(raw.output == HostTranspose(a, DType::kF32, kIdleShape));
  ExpectUnharmed(server);
}

TEST_P(Idle, WaitingInTheQueueIsNotTheClientsFault) {
  const auto gate = std::make_shared<Gate>();
  auto options = OwnTime();
  options.engine.max_in_flight = 1;
  TestServer server(std::make_unique<HeldDevice>(device(), gate), options);
  const std::string a = Floats(500'000, 1);
  RawStream first(server.Connect(), OwnTimeOfServer::kDeadline),
      second(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(first.Open(TransposeOpen(v1::DTYPE_F32, kIdleShape)));
  SendToHeldDevice(server, first, *gate, a);
  std::thread waiter([&] {
    EXPECT_TRUE(second.Open(TransposeOpen(v1::DTYPE_F32, kIdleShape)));
    EXPECT_TRUE(second.SendAll(0, a));
    const auto status = second.End();
    EXPECT_TRUE(status.ok()) << status.error_message();
  });
  EXPECT_TRUE(Eventually([&] { return server.engine().stats().jobs_queued == 1; }));
  time_.Pass(server, 24);
  gate->Open();
  const auto status = first.Drain();
  EXPECT_TRUE(status.ok()) << status.error_message();
  waiter.join();
  ExpectUnharmed(server);
}

TEST_P(Idle, ClientThatNeverReadsLosesItsStreamAndTheMemoryReturns) {
  TestServer server(device(), OwnTime());
  const std::vector<int64_t> shape{5000, 1000};  // 20 MB, more than flow control lets through
  const std::string data = Floats(5'000'000, 1);
  RawStream raw(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, shape)));
  ASSERT_TRUE(raw.SendAll(0, data));
  raw.stream->WritesDone();
  ASSERT_TRUE(HasHalfClosed(server, raw));
  time_.PassUntil(server, [&] { return server.engine().stats().jobs_in_flight == 0; });
  server.ExpectIdle();  // without anybody having read anything
  ExpectIdleRecord(server);
  EXPECT_EQ(raw.Drain().error_code(), kLate);
  ExpectUnharmed(server);
}

TEST_P(Idle, ClientThatReadsSlowlyGetsEverything) {
  auto options = OwnTime();
  options.engine.block_bytes = 1 << 20;
  TestServer server(device(), options);
  const std::vector<int64_t> shape{10'000, 1000};
  const std::string data = Floats(10'000'000, 1);
  RawStream raw(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, shape)));
  ASSERT_TRUE(raw.SendAll(0, data));
  raw.stream->WritesDone();
  ASSERT_TRUE(HasHalfClosed(server, raw));
  v1::ExecuteResponse response;
  for (int i = 0; i < 36; ++i) {  // twice the time; windows of some megabytes open in large steps
    ASSERT_TRUE(raw.stream->Read(&response));
    raw.output += response.chunk().data();
    if (i % 2 == 1) time_.Pass(server, 1);
  }
  const auto status = raw.Drain();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(raw.output == HostTranspose(data, DType::kF32, shape));
  ExpectUnharmed(server);
}

TEST_P(Idle, LateHalfCloseWithinTheTimeIsFine) {
  TestServer server(device(), OwnTime());
  const std::string a = Floats(500'000, 1);
  RawStream raw(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, kIdleShape)));
  ASSERT_TRUE(raw.SendAll(0, a));
  ASSERT_TRUE(HasArrived(server, raw, kIdleBytes));
  time_.Pass(server, 6);
  const auto status = raw.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  ExpectUnharmed(server);
}

TEST_P(Idle, NoHalfCloseAtAll) {
  TestServer server(device(), OwnTime());
  const std::string a = Floats(500'000, 1);
  RawStream raw(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, kIdleShape)));
  ASSERT_TRUE(raw.SendAll(0, a));
  ASSERT_TRUE(raw.SendAll(1, a));
  ASSERT_TRUE(HasArrived(server, raw, 2 * kIdleBytes));
  ExpectError(time_.DrainWhileItPasses(server, raw), kLate, "IDLE");
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing
