// Unary calls that come while too many others wait are refused at once. Time is the test's own; the law
// itself is tested in unit/backlog_test.cc.
#include <string>
#include <thread>
#include <vector>

#include "kernels/array/busy.h"
#include "tests/integration/helpers.h"
#include "tests/unit/engine_time_testing.h"

namespace tilewire::testing {
namespace {

class LateCalls : public OnBoth {
 protected:
  LateCalls() {
    options_.rpc.identity_header = "x-user";
    options_.engine.time = &time_;
    options_.engine.max_in_flight = 1;
  }
  /// A unary call of two arrays.
  static grpc::Status Unary(TestServer& server, const std::string& user, int64_t count = 1,
                            grpc::ClientContext* context = nullptr) {
    grpc::ClientContext own;
    if (!context) context = &own;
    context->AddMetadata("x-user", user);
    const std::string bytes = Floats(static_cast<size_t>(count), 1);
    v1::RmseResponse response;
    return v1::Kernels::NewStub(server.Connect())->Rmse(context, RmseCall({count}, bytes, bytes), &response);
  }
  /// A second passes in which one of two calls of Ann's, that wait, has been let in, and nothing of the
  /// other. `check` runs then.
  void WhileCallsWait(TestServer& server, const std::function<void()>& check) {
    RawStream first(server.Connect()), second(server.Connect());
    for (RawStream* raw : {&first, &second}) raw->context.AddMetadata("x-user", "ann");
    ASSERT_TRUE(first.OpenAndSend(RmseOpen(v1::DTYPE_F32, {1})));
    ASSERT_TRUE(server.InFlight(1));
    std::thread let_in([&] { EXPECT_TRUE(Unary(server, "ann").ok()); });
    EXPECT_TRUE(server.Queued(1));
    ASSERT_TRUE(second.OpenAndSend(RmseOpen(v1::DTYPE_F32, {1})));
    EXPECT_TRUE(server.Queued(2));
    std::thread waits([&] { EXPECT_TRUE(Unary(server, "ann").ok()); });
    EXPECT_TRUE(server.Queued(3));
    first.context.TryCancel();
    EXPECT_FALSE(first.Drain().ok());
    let_in.join();
    EXPECT_TRUE(server.Queued(1));
    time_.Advance(std::chrono::seconds(1));
    check();
    second.context.TryCancel();
    EXPECT_FALSE(second.Drain().ok());
    waits.join();
  }

  ManualTime time_;
  TestServer::Options options_;
};
TILEWIRE_ON_STAGED(LateCalls);

TEST_P(LateCalls, AreRefusedAndToldWhenToComeAgain) {
  TestServer server(device(), options_);
  WhileCallsWait(server, [&] {
    grpc::ClientContext context;
    ExpectError(Unary(server, "ann", 1, &context), kExhausted, "BUSY");
    EXPECT_EQ(context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
    EXPECT_EQ(server.engine().stats().jobs_queued, 1u);
    EXPECT_TRUE(Eventually([&] {
      const auto records = server.observer().records();
      return !records.empty() && records.back().shed == rpc::JobClass::kSmall;
    }));
  });
  EXPECT_TRUE(Unary(server, "ann").ok());
  ExpectUnharmed(server);
}

TEST_P(LateCalls, WhereNoPlaceIsLeftOneIsAskedToHoldOthersBack) {
  options_.engine.queue_length = 2;
  TestServer server(device(), options_);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Unary(server, "ann").ok()) << "how many can be done is known now";
  RawStream runs(server.Connect());
  runs.context.AddMetadata("x-user", "ann");
  ASSERT_TRUE(runs.OpenAndSend(RmseOpen(v1::DTYPE_F32, {1})));
  ASSERT_TRUE(server.InFlight(1));
  std::vector<std::thread> wait;
  for (int i = 0; i < 2; ++i) wait.emplace_back([&] { EXPECT_TRUE(Unary(server, "ann").ok()); });
  EXPECT_TRUE(server.Queued(2));
  std::string field;
  for (int calls = 0; calls < 1000 && field.empty(); ++calls) {
    time_.Advance(std::chrono::milliseconds(10));
    const grpc::Status status = Unary(server, "ann");
    ASSERT_EQ(status.error_code(), kExhausted);
    const auto info = ErrorInfoOf(status);
    EXPECT_EQ(info.reason(), "BUSY");
    if (const auto found = info.metadata().find("field"); found != info.metadata().end())
      field = found->second;
  }
  EXPECT_EQ(field, kSmallCallsWait);
  runs.context.TryCancel();
  EXPECT_FALSE(runs.Drain().ok());
  for (std::thread& one : wait) one.join();
  ExpectUnharmed(server);
}

TEST_P(LateCalls, OfOthersAreNot) {
  TestServer server(device(), options_);
  std::thread bob;
  WhileCallsWait(server, [&] {
    bob = std::thread([&] { EXPECT_TRUE(Unary(server, "bob").ok()); });
    EXPECT_TRUE(server.Queued(2));
  });
  bob.join();
  ExpectUnharmed(server);
}

TEST_P(LateCalls, NorIsAnybodyWithoutALimit) {
  options_.rpc.late = {};
  TestServer server(device(), options_);
  std::thread third;
  WhileCallsWait(server, [&] {
    third = std::thread([&] { EXPECT_TRUE(Unary(server, "ann").ok()); });
    EXPECT_TRUE(server.Queued(2));
  });
  third.join();
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing
