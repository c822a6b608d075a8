// Calls whose messages do not come hold nothing for ever: not their connection's places, not a drain.
#include "server/rpc/calls/message_watch.h"

#include "tests/integration/helpers.h"
#include "tests/integration/own_time.h"

namespace tilewire::testing {
namespace {

using std::chrono::seconds;

constexpr auto kRmse = "/tilewire.v1.Kernels/Rmse";
constexpr double kLeastRate = 1 << 20;

class MessageWatch : public ::testing::Test {
 protected:
  TestServer::Options Options(double least_rate = kLeastRate) {
    TestServer::Options options = time_.Options();
    options.rpc.least_rate = least_rate;
    return options;
  }
  void Pass(TestServer& server, Clock::duration time) {
    engine::testing::Pass(time_.source(), server.engine().timer(), time);
  }
  static bool HaveCome(TestServer& server, int calls) {
    return Eventually([&] { return server.observer().started() == calls; });
  }
  /// Its message comes after all.
  static void ExpectServed(ByteCall* call) {
    std::string reply;
    EXPECT_TRUE(call->Write(Message()) && call->Read(&reply));
    const grpc::Status status = call->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  static std::string Message() { return RmseCall({1}, "1234", "1234").SerializeAsString(); }

  OwnTimeOfServer time_;
};

TEST_F(MessageWatch, OneThatDoesNotComeIsGivenUpAndItsPlaceIsFree) {
  TestServer::Options options = Options();
  options.rpc.connection_use.calls = 1;
  TestServer server(options);
  const auto channel = server.Connect();
  ByteCall half(channel, kRmse);
  const TimePoint began = time_.Now();
  half.Start();
  ASSERT_TRUE(HaveCome(server, 1));
  ExpectError(ByteCall(channel, kRmse).Unary(Message()).status, grpc::StatusCode::RESOURCE_EXHAUSTED, "BUSY",
              "calls of the connection", "1");
  time_.PassUntil(server, [&] { return server.observer().records().size() == 2; });
  EXPECT_GE(time_.Now() - began, rpc::LongestMessage(OwnTimeOfServer::kIdle.count(), kLeastRate));
  const grpc::Status status = half.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status.error_message(), server.observer().records()[1].status.message());
  EXPECT_EQ(server.observer().records()[1].status.reason(), "IDLE");
  server.ExpectIdle();
  EXPECT_TRUE(ByteCall(channel, kRmse).Unary(Message()).status.ok());
}

TEST_F(MessageWatch, OneMayTakeAsLongAsTheLargestAtTheLeastRate) {
  TestServer server(Options());
  ByteCall slow(server.Connect(), kRmse);
  slow.Start();
  ASSERT_TRUE(HaveCome(server, 1));
  const Clock::duration longest = rpc::LongestMessage(OwnTimeOfServer::kIdle.count(), kLeastRate);
  EXPECT_GE(longest, OwnTimeOfServer::kIdle + seconds(4));
  EXPECT_LE(longest, OwnTimeOfServer::kIdle + seconds(5));
  for (const TimePoint end = time_.Now() + longest - seconds(1); time_.Now() < end;) Pass(server, seconds(1));
  ExpectServed(&slow);
}

TEST_F(MessageWatch, WithoutALeastRateOneMayTakeAnyTime) {
  EXPECT_EQ(rpc::LongestMessage(30, 0), Clock::duration::max());
  EXPECT_EQ(rpc::LongestMessage(30, 1e-300), Clock::duration::max());
  TestServer server(Options(0));
  ByteCall slow(server.Connect(), kRmse);
  slow.Start();
  ASSERT_TRUE(HaveCome(server, 1));
  for (int i = 0; i < 100; ++i) Pass(server, std::chrono::hours(1));
  ExpectServed(&slow);
}

TEST_F(MessageWatch, ADrainWaitsForNone) {
  TestServer server(Options());
  ByteCall silent(server.Connect(), kRmse), slow(server.Connect(), kRmse);
  RawStream unopened(server.Connect(), OwnTimeOfServer::kDeadline),
      running(server.Connect(), OwnTimeOfServer::kDeadline);
  silent.Start();
  slow.Start();
  unopened.Start();
  ASSERT_TRUE(running.Open(RmseOpen(v1::DTYPE_F32, {4})));
  ASSERT_TRUE(OwnTimeOfServer::OpenedIsTaken(server, running));
  ASSERT_TRUE(HaveCome(server, 4));
  const TimePoint began = time_.Now();
  server.rpc().BeginDrain();
  Pass(server, rpc::kMessageWhileDraining - std::chrono::milliseconds(1));
  EXPECT_TRUE(slow.Write(Message()));  // in time: it is told why in full
  slow.WritesDone();
  ExpectError(slow.Finish(), grpc::StatusCode::UNAVAILABLE, "DRAINING");
  EXPECT_TRUE(Eventually([&] {
    Pass(server, std::chrono::milliseconds(500));
    return server.observer().records().size() == 3;
  }));
  EXPECT_GE(time_.Now() - began, rpc::kMessageWhileDraining);
  EXPECT_EQ(silent.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(unopened.Drain().error_code(), grpc::StatusCode::UNAVAILABLE);
  for (const auto& record : server.observer().records()) EXPECT_EQ(record.status.reason(), "DRAINING");

  for (const uint32_t operand : {0, 1}) ASSERT_TRUE(running.SendAll(operand, Floats(4, 1)));
  const grpc::Status status = running.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(server.rpc().WaitIdle(Clock::now() + seconds(60)));
  server.ExpectIdle();
}

}  // namespace
}  // namespace tilewire::testing
