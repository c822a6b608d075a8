// Methods that no service has: refused in our words, on record, and counted under one label.
#include "server/rpc/calls/unknown.h"
#include "tests/integration/helpers.h"
#include "tests/integration/program.h"

namespace tilewire::testing {
namespace {

constexpr auto kUnimplemented = grpc::StatusCode::UNIMPLEMENTED;

/// The records, once there are so many.
std::vector<rpc::CallRecord> Records(TestServer& server, size_t count) {
  EXPECT_TRUE(Eventually([&] { return server.observer().records().size() >= count; }));
  return server.observer().records();
}

TEST(UnknownMethod, IsRefusedWithDetailsAndARecord) {
  TestServer::Options options;
  options.rpc.identity_header = "x-user";
  TestServer server(options);
  const auto channel = server.Connect();
  const std::vector<std::string> methods{"/tilewire.v1.Kernels/Nope", "/tilewire.v1.Nope/Rmse", "/nope",
                                         "/grpc.health.v1.Health/X"};
  for (size_t i = 0; i < methods.size(); ++i) {
    ByteCall call(channel, methods[i]);
    call.context.AddMetadata("x-request-id", "request-" + std::to_string(i));
    call.context.AddMetadata("x-user", "ann");
    ExpectError(call.Unary("x").status, kUnimplemented, "UNKNOWN_METHOD", "method", methods[i]);
    const auto& initial = call.context.GetServerInitialMetadata();
    EXPECT_EQ(initial.count("x-request-id"), 1u);
    const auto record = Records(server, i + 1).at(i);
    EXPECT_EQ(record.method, methods[i]);
    EXPECT_EQ(record.status.code(), Code::kUnimplemented);
    EXPECT_EQ(record.status.reason(), "UNKNOWN_METHOD");
    EXPECT_EQ(record.request_id, "request-" + std::to_string(i));
    EXPECT_EQ(record.identity, "header:ann");
    EXPECT_NE(record.peer, "");
    EXPECT_GT(record.timing.wall_us, 0);
  }
  ExpectUnharmed(server);
  EXPECT_EQ(server.observer().records().size(), methods.size() + 2) << "and the two good calls";
}

// The client goes on sending; nothing of that is waited for, nor read.
TEST(UnknownMethod, OfAStreamThatNeverEnds) {
  TestServer server;
  ByteCall call(server.Connect(), "/tilewire.v1.Kernels/Nope");
  call.Start();
  while (call.Write(std::string(1 << 20, 'x'))) {
  }
  ExpectError(call.Finish(), kUnimplemented, "UNKNOWN_METHOD", "method", "/tilewire.v1.Kernels/Nope");
  EXPECT_EQ(Records(server, 1).at(0).bytes_in, 0u);
  ExpectUnharmed(server);
}

TEST(UnknownMethod, NamesAreBoundedAndPrintable) {
  EXPECT_EQ(rpc::PrintableMethod("/a.B/C"), "/a.B/C");
  EXPECT_EQ(rpc::PrintableMethod("Kernels.Rmse"), "/Kernels.Rmse") << "or it would count as that method";
  EXPECT_EQ(rpc::PrintableMethod(""), "/");
  EXPECT_EQ(rpc::PrintableMethod("/a b\n\x7f\xc3\xa9\""), "/a?b????\"");
  EXPECT_EQ(rpc::PrintableMethod("/" + std::string(127, 'm')), "/" + std::string(127, 'm'));
  EXPECT_EQ(rpc::PrintableMethod("/" + std::string(128, 'm')), "/" + std::string(127, 'm') + "...");
  TestServer server;
  ExpectError(ByteCall(server.Connect(), "/" + std::string(3000, 'm')).Unary("").status, kUnimplemented,
              "UNKNOWN_METHOD", "method", "/" + std::string(127, 'm') + "...");
  EXPECT_EQ(Records(server, 1).at(0).method.size(), 131u);
}

TEST(UnknownMethod, OneLabelForAllAndALineForEach) {
  Program program({"--device", "cpu", "--listen", "localhost:0", "--metrics-listen", "127.0.0.1:0"});
  const auto channel = ConnectTo(program.Ready()[0]);
  const std::string metrics = program.MetricsAddress();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(ByteCall(channel, "/made.Up/Number" + std::to_string(i)).Unary("").status.error_code(),
              kUnimplemented);
  const auto value = [&](const std::string& sample) { return SumOfMetric(metrics, sample + " "); };
  EXPECT_TRUE(Eventually([&] {
    return value(R"(tilewire_calls_total{method="other",operation="none",status="UNIMPLEMENTED"})") == 5;
  }));
  EXPECT_EQ(value(R"(tilewire_refusals_total{reason="UNKNOWN_METHOD"})"), 5);
  EXPECT_EQ(HttpGet(metrics, "/metrics").find("made.Up"), std::string::npos);
  for (int i = 0; i < 5; ++i) {
    const std::string line = "method=/made.Up/Number" + std::to_string(i) + " ";
    EXPECT_TRUE(Eventually([&] { return program.err().find(line) != std::string::npos; })) << program.err();
  }
  EXPECT_TRUE(Eventually([&] { return value(R"(tilewire_calls_in_progress{method="other"})") == 0; }));
}

}  // namespace
}  // namespace tilewire::testing
