// Health and drain: what runs may end, what is new goes elsewhere.
#include "server/rpc/drain.h"
#include "tests/integration/helpers.h"
#include "tests/integration/own_time.h"

namespace tilewire::testing {
namespace {

// grpc.health.v1.HealthCheckResponse.ServingStatus
constexpr int kServing = 1, kNotServing = 2;

/// grpc.health.v1.Health/Check; the status number, or minus the gRPC status code.
int Check(const TestServer& server, const std::string& service) {
  std::string request;
  if (!service.empty()) request = "\x0a" + std::string(1, static_cast<char>(service.size())) + service;
  const auto reply = ByteCall(server.Connect(), "/grpc.health.v1.Health/Check").Unary(request);
  if (!reply.status.ok()) return -static_cast<int>(reply.status.error_code());
  return reply.bytes.size() == 2 && reply.bytes[0] == '\x08' ? reply.bytes[1] : 0;
}

TEST(Health, AnswersByService) {
  TestServer server;
  for (const char* service : {"", "liveness", "readiness"})
    EXPECT_EQ(Check(server, service), kServing) << service;
  EXPECT_EQ(Check(server, "nonsense"), -static_cast<int>(grpc::StatusCode::NOT_FOUND));
  server.rpc().SetReady(false);
  EXPECT_EQ(Check(server, ""), kNotServing);
  EXPECT_EQ(Check(server, "readiness"), kNotServing);
  EXPECT_EQ(Check(server, "liveness"), kServing);
  server.rpc().SetReady(true);
  server.rpc().SetLive(false);
  EXPECT_EQ(Check(server, "liveness"), kNotServing);
  EXPECT_EQ(Check(server, "readiness"), kServing);
  ExpectUnharmed(server);
}

class Drain : public OnBoth {};
TILEWIRE_ON_BOTH(Drain);

TEST_P(Drain, RunningCallsFinishAndNewOnesGoElsewhere) {
  TestServer::Options options;
  options.engine.max_in_flight = 1;
  TestServer server(device(), options);
  const std::string a = Floats(1 << 18, 1), b = Floats(1 << 18, 2);
  RawStream running(server.Connect()), queued(server.Connect());
  ASSERT_TRUE(running.Open(RmseOpen(v1::DTYPE_F32, {1 << 18})));
  ASSERT_TRUE(running.SendAll(0, a));
  ASSERT_TRUE(server.InFlight(1));
  std::thread waiter([&] {
    // It came before the drain, so that it may still run.
    EXPECT_TRUE(queued.Open(RmseOpen(v1::DTYPE_F32, {1 << 18})));
    queued.SendAll(0, a);
    queued.SendAll(1, a);
    const auto status = queued.End();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(queued.output, std::string(8, '\0'));
  });
  ASSERT_TRUE(Eventually([&] { return server.engine().stats().jobs_queued == 1; }));
  server.rpc().SetReady(false);
  server.rpc().BeginDrain();
  EXPECT_EQ(Check(server, "readiness"), kNotServing);
  EXPECT_EQ(Check(server, "liveness"), kServing);

  RawStream late(server.Connect());
  EXPECT_FALSE(late.Open(RmseOpen(v1::DTYPE_F32, {1 << 18})));
  ExpectError(late.End(), grpc::StatusCode::UNAVAILABLE, "DRAINING");
  grpc::ClientContext context, describe;
  v1::RmseResponse response;
  const auto stub = v1::Kernels::NewStub(server.Connect());
  ExpectError(stub->Rmse(&context, RmseCall({1}, "1234", "1234"), &response), grpc::StatusCode::UNAVAILABLE,
              "DRAINING");
  v1::DescribeResponse described;
  EXPECT_TRUE(v1::Device::NewStub(server.Connect())->Describe(&describe, {}, &described).ok())
      << "questions go on";
  EXPECT_FALSE(server.rpc().WaitIdle(Clock::now()));

  ASSERT_TRUE(running.SendAll(1, b));
  const auto status = running.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(running.output, HostRmse(a, b, DType::kF32, {1 << 18}));
  waiter.join();
  EXPECT_TRUE(server.rpc().WaitIdle(Clock::now() + std::chrono::seconds(60)));
  server.ExpectIdle();
}

constexpr char kGone[] = "the server is going away and ended the call: its drain time is over";

/// What every call of a server that went away is on record as.
void ExpectGone(TestServer& server, size_t calls) {
  server.ExpectIdle();
  const auto records = server.observer().records();
  EXPECT_EQ(records.size(), calls);
  for (const auto& record : records) {
    EXPECT_EQ(record.status.code(), Code::kUnavailable);
    EXPECT_EQ(record.status.reason(), "DRAINING");
    EXPECT_EQ(record.status.message(), kGone);
  }
}

TEST_P(Drain, ShutdownEndsWhatStillRunsAndSaysThatItDid) {
  TestServer::Options options;
  options.engine.max_in_flight = 1;
  TestServer server(device(), options);
  RawStream running(server.Connect()), silent(server.Connect()), queued(server.Connect());
  silent.Start();
  ASSERT_TRUE(running.Open(RmseOpen(v1::DTYPE_F32, {1 << 18})));
  ASSERT_TRUE(running.SendAll(0, Floats(1 << 18, 1)));
  ASSERT_TRUE(server.InFlight(1));
  std::thread waiter([&] { EXPECT_TRUE(queued.OpenAndSend(RmseOpen(v1::DTYPE_F32, {1 << 18}))); });
  ASSERT_TRUE(Eventually(
      [&] { return server.engine().stats().jobs_queued == 1 && server.observer().started() == 3; }));
  const auto start = std::chrono::steady_clock::now();
  server.rpc().Shutdown(Clock::now() + std::chrono::milliseconds(100));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(25)) << "not by idle_seconds";
  waiter.join();
  for (RawStream* stream : {&running, &queued})
    ExpectError(stream->End(), grpc::StatusCode::UNAVAILABLE, "DRAINING");
  const auto status = silent.End();  // cut off, since it would never have spoken
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), kGone);
  ExpectGone(server, 3);
}

// Its status waits behind output that nobody reads, on a device that takes its time.
TEST_P(Drain, ShutdownCutsWhoDoesNotRead) {
  TestServer server(engine::MakeSlow(device(), {.launch = std::chrono::milliseconds(300)}), {});
  RawStream raw(server.Connect());
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, {512, 512})));
  ASSERT_TRUE(raw.SendAll(0, Floats(1 << 18, 1)));
  server.rpc().Shutdown(Clock::now());
  EXPECT_EQ(raw.End().error_code(), grpc::StatusCode::UNAVAILABLE);
  ExpectGone(server, 1);
}

// A client that went away before the server did is still the one that ended its call.
TEST_P(Drain, WhoLeftBeforeIsNotTheServersDoing) {
  TestServer server(device(), {});
  RawStream left(server.Connect()), late(server.Connect());
  ASSERT_TRUE(left.Open(RmseOpen(v1::DTYPE_F32, {1 << 18})));
  ASSERT_TRUE(late.Open(RmseOpen(v1::DTYPE_F32, {1 << 18})));
  left.context.TryCancel();
  ASSERT_TRUE(Eventually([&] { return server.observer().records().size() == 1; }));
  server.rpc().Shutdown(Clock::now());
  const auto records = server.observer().records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].status.reason(), "CANCELLED");
  EXPECT_EQ(records[1].status.reason(), "DRAINING");
}

/// A server that drains by time of its own; `pause` is what happens instead of each pause.
class OwnDrain : public ::testing::Test {
 protected:
  bool Drain(Clock::duration most, const std::function<bool(std::chrono::milliseconds)>& pause) {
    return rpc::Drain(&server_.rpc(), time_.source(), most, pause);
  }
  /// A call, and that it is told to go elsewhere.
  void ExpectTold(v1::Kernels::Stub* stub) {
    grpc::ClientContext context;
    v1::RmseResponse response;
    ExpectError(stub->Rmse(&context, RmseCall({1}, "1234", "1234"), &response), grpc::StatusCode::UNAVAILABLE,
                "DRAINING");
  }

  OwnTimeOfServer time_;
  TestServer server_{time_.Options()};
  const TimePoint start_ = time_.Now();
};

TEST_F(OwnDrain, AServerWithoutCallsEndsAtOnce) {
  EXPECT_TRUE(Drain(std::chrono::hours(1), [](auto) {
    ADD_FAILURE() << "what for?";
    return true;
  }));
}

TEST_F(OwnDrain, ItLingersUntilNobodyHasCalledForAWhile) {
  const auto stub = v1::Kernels::NewStub(server_.Connect());
  grpc::ClientContext context;
  v1::RmseResponse response;
  EXPECT_TRUE(stub->Rmse(&context, RmseCall({1}, "1234", "1234"), &response).ok());
  int calls = 0;
  EXPECT_TRUE(Drain(std::chrono::hours(1), [&](auto pause) {
    if (calls < 50) {
      ExpectTold(stub.get());
      ++calls;
    }
    time_.source().Advance(pause);
    return false;
  }));
  EXPECT_EQ(calls, 50);
  EXPECT_GE(time_.Now() - start_,
            std::chrono::milliseconds(1280));  // 49 pauses with calls, and 300 ms of quiet
  EXPECT_LE(time_.Now() - start_, std::chrono::seconds(2));
}

TEST_F(OwnDrain, SomebodyWhoNeverStopsCallingDoesNotKeepIt) {
  const auto stub = v1::Kernels::NewStub(server_.Connect());
  grpc::ClientContext context;
  v1::RmseResponse response;
  EXPECT_TRUE(stub->Rmse(&context, RmseCall({1}, "1234", "1234"), &response).ok());
  EXPECT_TRUE(Drain(std::chrono::hours(1), [&](auto pause) {
    ExpectTold(stub.get());
    time_.source().Advance(5 * pause);
    return false;
  }));
  EXPECT_GE(time_.Now() - start_, std::chrono::seconds(5));
  EXPECT_LT(time_.Now() - start_, std::chrono::seconds(60));
}

TEST_F(OwnDrain, WhatStillRunsIsCutWhenTheTimeIsOver) {
  RawStream raw(server_.Connect());
  ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, {1 << 18})));
  EXPECT_FALSE(Drain(std::chrono::seconds(10), [&](auto) {
    EXPECT_LT(time_.Now() - start_, std::chrono::seconds(10));
    time_.source().Advance(std::chrono::seconds(1));
    return false;
  }));
  EXPECT_EQ(time_.Now() - start_, std::chrono::seconds(10));
  ExpectError(raw.Drain(), grpc::StatusCode::UNAVAILABLE, "DRAINING");
}

TEST_F(OwnDrain, ASecondSignalEndsItAtOnce) {
  RawStream raw(server_.Connect());
  ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, {1 << 18})));
  int pauses = 0;
  EXPECT_FALSE(Drain(std::chrono::hours(1), [&](auto) { return ++pauses == 3; }));
  EXPECT_EQ(pauses, 3);
  ExpectError(raw.Drain(), grpc::StatusCode::UNAVAILABLE, "DRAINING");
}

TEST(Listen, TakenAddressIsAnErrorThatNamesIt) {
  TestServer server;
  const auto second =
      rpc::Server::Start(&server.engine(), &server.observer(), {.listen = {server.address()}});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
  EXPECT_NE(second.error().message().find(server.address()), std::string_view::npos)
      << second.error().message();
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing
