// Calls whose messages do not come hold nothing for ever: not their connection's places, not a drain.
#include "server/rpc/calls/message_watch.h"

#include <poll.h>
#include <sys/socket.h>

#include "server/rpc/listener/file_descriptor.h"
#include "tests/bench/http2_frames.h"
#include "tests/integration/helpers.h"
#include "tests/integration/own_time.h"

namespace tilewire::testing {
namespace {

namespace http2 = bench::http2;
using std::chrono::milliseconds, std::chrono::seconds;

constexpr auto kRmse = "/tilewire.v1.Kernels/Rmse";
constexpr double kLeastRate = 1 << 20;
constexpr milliseconds kLook(500);

/// What a server has of a call by headers and a part of its message, sent by hand.
class HalfACall {
 public:
  HalfACall(const std::string& address, const std::string& message, int timeout_ms = 60'000)
      : socket_(http2::Connect(address)) {
    std::string bytes = http2::ClientGreeting(1 << 20), framed;
    http2::AppendFrame(&bytes, http2::kHeaders, http2::kEndHeaders, 1,
                       http2::CallHeaders(true, kRmse, timeout_ms));
    http2::AppendMessage(&framed, message);
    http2::AppendFrame(&bytes, http2::kData, 0, 1, framed.substr(0, framed.size() / 2));
    pollfd ready{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    EXPECT_EQ(poll(&ready, 1, 60'000), 1);
    EXPECT_EQ(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
  }

 private:
  const rpc::FileDescriptor socket_;
};

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
  static Clock::duration Within(double least_rate = kLeastRate) {
    return rpc::PatienceWith(OwnTimeOfServer::kIdle.count(), least_rate).within;
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
  ByteCall silent(channel, kRmse);
  const TimePoint began = time_.Now();
  silent.Start();
  ASSERT_TRUE(HaveCome(server, 1));
  time_.PassUntil(server, [&] { return !server.observer().records().empty(); });
  EXPECT_GE(time_.Now() - began, Within());
  const grpc::Status status = silent.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status.error_message(), server.observer().records()[0].status.message());
  EXPECT_EQ(server.observer().records()[0].status.reason(), "IDLE");
  server.ExpectIdle();
  EXPECT_TRUE(ByteCall(channel, kRmse).Unary(Message()).status.ok());
}

TEST_F(MessageWatch, APartOfOneIsNone) {
  TestServer server(Options());
  const HalfACall half(server.address(), Message());
  ASSERT_TRUE(HaveCome(server, 1));
  time_.PassUntil(server, [&] { return !server.observer().records().empty(); });
  EXPECT_EQ(server.observer().records()[0].status.reason(), "IDLE");
  server.ExpectIdle();
}

/// By the server's clock: the client does not cancel.
TEST_F(MessageWatch, ADeadlineThatPassesBeforeItComesIsOnRecordAsOne) {
  TestServer server(Options());
  const HalfACall half(server.address(), Message(), 50);
  ASSERT_TRUE(Eventually([&] { return !server.observer().records().empty(); }));
  EXPECT_EQ(server.observer().records()[0].status.reason(), "DEADLINE");
  server.ExpectIdle();
}

TEST_F(MessageWatch, OneMayTakeAsLongAsTheLargestAtTheLeastRate) {
  EXPECT_EQ(Within(), OwnTimeOfServer::kIdle + seconds(4));
  EXPECT_EQ(rpc::PatienceWith(40, kLeastRate).moving_bytes, 44 * kLeastRate);
  TestServer server(Options());
  ByteCall slow(server.Connect(), kRmse);
  slow.Start();
  ASSERT_TRUE(HaveCome(server, 1));
  for (const TimePoint end = time_.Now() + Within() - kLook; time_.Now() < end;) Pass(server, kLook);
  ExpectServed(&slow);
}

/// The listener has looked at all connections: only then it ends one of too many failed calls, and of two one
/// after the other the second by another look.
void ListenerLooks(TestServer& server) {
  for (int i = 0; i < 2; ++i) {
    const int before = server.observer().ended();
    const auto failing = server.Connect();
    EXPECT_TRUE(Eventually([&] {
      ByteCall(failing, "/tilewire.v1.Kernels/Nope").Unary("");
      return server.observer().ended() > before;
    }));
  }
}

TEST_F(MessageWatch, OneHasLongerWhileItsConnectionMoves) {
  constexpr double kSlowRate = 1 << 10;
  constexpr int kFloats = 450'000;
  TestServer::Options options = Options(kSlowRate);
  options.rpc.connections.most_failed_calls = 20;
  TestServer server(options);
  const auto channel = server.Connect();
  ByteCall silent(channel, kRmse);
  silent.context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(5));
  silent.Start();
  ASSERT_TRUE(HaveCome(server, 1));
  const std::string operand = Floats(kFloats, 1);
  const std::string other_call = RmseCall({kFloats}, operand, operand).SerializeAsString();
  ASSERT_GT(2 * static_cast<double>(other_call.size()),
            rpc::PatienceWith(OwnTimeOfServer::kIdle.count(), kSlowRate).moving_bytes);
  for (int part = 0; part < 3; ++part) {  // 1.8 of its time in all
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(ByteCall(channel, kRmse).Unary(other_call).status.ok());
    ListenerLooks(server);
    for (int i = 0; i < 4; ++i) Pass(server, Within(kSlowRate) * 15 / 100);
  }
  ExpectServed(&silent);
}

TEST_F(MessageWatch, WithoutALeastRateOneMayTakeAnyTime) {
  EXPECT_EQ(Within(0), Clock::duration::max());
  EXPECT_EQ(Within(1e-300), Clock::duration::max());
  TestServer server(Options(0));
  ByteCall slow(server.Connect(), kRmse);
  slow.Start();
  ASSERT_TRUE(HaveCome(server, 1));
  for (int i = 0; i < 100; ++i) Pass(server, std::chrono::hours(1));
  ExpectServed(&slow);
}

TEST_F(MessageWatch, ADrainWaitsForNone) {
  TestServer::Options options = Options();
  options.rpc.idle_seconds = 1e6;  // or what runs would be idle, should the others' ends take their time
  TestServer server(options);
  ByteCall silent(server.Connect(), kRmse), slow(server.Connect(), kRmse);
  RawStream unopened(server.Connect(), OwnTimeOfServer::kDeadline),
      running(server.Connect(), OwnTimeOfServer::kDeadline);
  silent.Start();
  slow.Start();
  unopened.Start();
  ASSERT_TRUE(running.Open(RmseOpen(v1::DTYPE_F32, {4})));
  ASSERT_TRUE(OwnTimeOfServer::OpenedIsTaken(server, running));
  ASSERT_TRUE(HaveCome(server, 4));
  for (int i = 0; i < 10; ++i) Pass(server, kLook);  // which do not count
  const TimePoint began = time_.Now();
  server.rpc().BeginDrain();
  while (time_.Now() - began < rpc::kMessageWhileDraining) Pass(server, kLook);
  EXPECT_TRUE(slow.Write(Message()));  // in time: it is told why in full
  slow.WritesDone();
  ExpectError(slow.Finish(), grpc::StatusCode::UNAVAILABLE, "DRAINING");
  EXPECT_TRUE(Eventually([&] {
    Pass(server, kLook);
    return server.observer().records().size() == 3;
  }));
  EXPECT_EQ(silent.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(unopened.Drain().error_code(), grpc::StatusCode::UNAVAILABLE);
  for (const auto& record : server.observer().records()) EXPECT_EQ(record.status.reason(), "DRAINING");

  for (const uint32_t operand : {0, 1}) ASSERT_TRUE(running.SendAll(operand, Floats(4, 1)));
  const grpc::Status status = running.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(server.rpc().WaitIdle(Clock::now() + seconds(60)));
  server.ExpectIdle();
}

/// A call as RunningCalls know it.
struct FakeCall final : rpc::Endable {
  void End(const Status& why, bool cut) override { ended = why.code() == Code::kDeadlineExceeded && cut; }
  bool waits_for_open() const override { return waits; }
  uint64_t connection_bytes() const override { return received; }

  bool waits = true, ended = false;
  uint64_t received = 1000;
};

class CutUnopened : public ::testing::Test {
 protected:
  CutUnopened() { running_.Begin(call_); }
  void Look(int at_seconds) {
    running_.CutUnopened(TimePoint(seconds(at_seconds)), {.within = seconds(10), .moving_bytes = 100},
                         Status(Code::kDeadlineExceeded, "IDLE", "late"));
  }

  const std::shared_ptr<FakeCall> call_ = std::make_shared<FakeCall>();
  rpc::RunningCalls running_;
};

TEST_F(CutUnopened, CutsOfThoseThatWaitWhatIsLateTwice) {
  for (const int at : {5, 14, 15}) Look(at);
  EXPECT_FALSE(call_->ended) << "the server may have stood still: once is not enough";
  Look(16);
  EXPECT_TRUE(call_->ended);
}

TEST_F(CutUnopened, LeavesWhoseMessageIsHere) {
  for (const int at : {5, 15}) Look(at);
  call_->waits = false;
  for (const int at : {16, 100}) Look(at);
  EXPECT_FALSE(call_->ended);
}

TEST_F(CutUnopened, LetsThoseWaitWhoseConnectionMoves) {
  Look(0);
  for (int at = 10; at <= 1000; at += 10) {
    call_->received += 100;
    for (const int later : {0, 1, 2}) Look(at + later);
  }
  EXPECT_FALSE(call_->ended);
  call_->received += 99;
  for (const int at : {1009, 1010}) Look(at);
  EXPECT_FALSE(call_->ended);
  Look(1011);
  EXPECT_TRUE(call_->ended) << "what it moved long ago does not count";
}

TEST_F(CutUnopened, BeginsAnewWithTheDrain) {
  for (const int at : {0, 10}) Look(at);
  running_.BeginDrain();
  for (const int at : {11, 20, 21}) Look(at);
  EXPECT_FALSE(call_->ended);
  Look(22);
  EXPECT_TRUE(call_->ended);
}

}  // namespace
}  // namespace tilewire::testing
