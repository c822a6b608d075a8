// Unary calls are known from their headers on, before their messages are here.
#include "tests/integration/helpers.h"
#include "tests/integration/program.h"

namespace tilewire::testing {
namespace {

constexpr auto kRmse = "/tilewire.v1.Kernels/Rmse";

TEST(UnaryHeaders, WhoMayNotCallIsToldWithoutHisMessage) {
  TestServer::Options options;
  options.rpc.anonymous = false;
  TestServer server(options);
  for (const char* const method : {kRmse, "/tilewire.v1.Device/Describe", "/tilewire.v1.Arrays/List"}) {
    ByteCall call(server.Connect(), method);
    call.Start();
    EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
  }
}

TEST(UnaryHeaders, ACallWithoutAMessageIsABadOne) {
  TestServer server;
  ByteCall call(server.Connect(), kRmse);
  call.Start();
  call.WritesDone();
  ExpectError(call.Finish(), grpc::StatusCode::INVALID_ARGUMENT, "BAD_MESSAGE", "message", "none");
  ExpectUnharmed(server);
}

TEST(UnaryHeaders, ACallThatIsGivenUpBeforeItsMessageIsOnRecord) {
  TestServer server;
  {
    ByteCall call(server.Connect(), kRmse);
    call.Start();
  }
  ASSERT_TRUE(Eventually([&] { return server.observer().records().size() == 1; }));
  EXPECT_EQ(server.observer().records()[0].status.code(), Code::kCancelled);
  ExpectUnharmed(server);
}

TEST(UnaryHeaders, TheEndOfAServerWaitsForNoMessage) {
  Program program({"--device", "cpu", "--listen", "localhost:0", "--drain-seconds", "86400",
                   "--metrics-listen", "localhost:0"});
  ByteCall call(ConnectTo(program.Ready()[0]), kRmse);
  call.Start();
  EXPECT_TRUE(Eventually([&] {
    return SumOfMetric(program.MetricsAddress(), "tilewire_calls_in_progress") == 1;
  })) << "the server knows of it";
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(60), 0) << program.err();
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
}

}  // namespace
}  // namespace tilewire::testing
