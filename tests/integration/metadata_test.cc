// What calls carry beside their messages, what the server notes about them, health and reflection.
#include <gmock/gmock.h>

#include <algorithm>

#include "server/rpc/transport/transport.h"
#include "tests/integration/helpers.h"

namespace tilewire::testing {
namespace {

using Metadata = std::map<std::string, std::string>;

std::string Initial(const grpc::ClientContext& context, const std::string& key) {
  const auto& initial = context.GetServerInitialMetadata();
  const auto found = initial.find(key);
  return found == initial.end() ? "" : std::string(found->second.data(), found->second.size());
}

/// A small RMSE with metadata; returns what of `key` comes back, once the call is on record: a client has its
/// reply before that, and the next call may be served by another thread.
std::string Echo(TestServer& server, const Metadata& sent, const std::string& key) {
  const size_t before = server.observer().records().size();
  grpc::ClientContext context;
  for (const auto& [name, value] : sent) context.AddMetadata(name, value);
  v1::RmseResponse response;
  const auto status = v1::Kernels::NewStub(server.Connect())
                          ->Rmse(&context, RmseCall({4}, Floats(4, 1), Floats(4, 2)), &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(Eventually([&] { return server.observer().records().size() > before; }));
  return Initial(context, key);
}

std::vector<rpc::CallRecord> RecordsOf(TestServer& server, const std::string& method, size_t count) {
  std::vector<rpc::CallRecord> records;
  EXPECT_TRUE(Eventually([&] {
    records.clear();
    for (const auto& record : server.observer().records())
      if (record.method == method) records.push_back(record);
    return records.size() >= count;
  })) << method;
  EXPECT_EQ(records.size(), count);
  return records;
}

TEST(Endpoints, NameWhatClientsCanDial) {
  using List = std::vector<std::string>;
  EXPECT_EQ(rpc::DialledAddresses({"localhost:1", "[::1]:2", "unix:/s"}),
            (List{"localhost:1", "[::1]:2", "unix:/s"}));
  for (const std::string wildcard : {"0.0.0.0:1", "[::]:1", "[::0]:1", "[0:0:0:0:0:0:0:0]:1"})
    EXPECT_EQ(rpc::DialledAddresses({wildcard, "localhost:2", "unix:/s"}), (List{"unix:/s"})) << wildcard;
}

TEST(Metadata, RequestIdsAndTraceParentsComeBack) {
  TestServer server;
  EXPECT_EQ(Echo(server, {{"x-request-id", "order-66/a"}}, "x-request-id"), "order-66/a");
  EXPECT_EQ(Echo(server, {{"x-request-id", std::string(128, 'r')}}, "x-request-id"), std::string(128, 'r'));
  const std::string parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  EXPECT_EQ(Echo(server, {{"traceparent", parent}}, "traceparent"), parent);
  EXPECT_EQ(Echo(server, {}, "traceparent"), "");
  EXPECT_EQ(Echo(server, {{"traceparent", std::string(129, 't')}}, "traceparent"), "");
  EXPECT_EQ(RecordsOf(server, "Kernels.Rmse", 5).at(2).traceparent, parent);
  ExpectUnharmed(server);
}

TEST(Metadata, AbsentAndBadRequestIdsAreReplaced) {
  TestServer server;
  std::vector<std::string> made;
  for (const Metadata& sent :
       {Metadata{}, Metadata{{"x-request-id", ""}}, Metadata{{"x-request-id", "two words"}},
        Metadata{{"x-request-id", std::string(129, 'r')}}}) {
    made.push_back(Echo(server, sent, "x-request-id"));
    EXPECT_EQ(made.back().size(), 16u) << made.back();
    EXPECT_EQ(made.back().find_first_not_of("0123456789abcdef"), std::string::npos) << made.back();
  }
  const auto records = RecordsOf(server, "Kernels.Rmse", 4);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(records[i].request_id, made[i]);
    for (size_t k = 0; k < i; ++k) EXPECT_NE(made[i], made[k]);
  }
}

TEST(Metadata, StreamsAndFailedCallsEchoToo) {
  TestServer server;
  RawStream raw(server.Connect());
  raw.context.AddMetadata("x-request-id", "failed-1");
  EXPECT_FALSE(raw.Open(RmseOpen(v1::DTYPE_BOOL, {4})));
  EXPECT_FALSE(raw.End().ok());
  EXPECT_EQ(Initial(raw.context, "x-request-id"), "failed-1");
  const auto record = RecordsOf(server, "Kernels.Execute", 1).at(0);
  EXPECT_EQ(record.request_id, "failed-1");
  EXPECT_EQ(record.status.reason(), "BAD_VALUE");
}

TEST(Metadata, IdentityOnlyFromTheNamedHeader) {
  TestServer::Options options;
  options.rpc.identity_header = "x-user";
  TestServer trusting(options), strict;
  Echo(trusting, {{"x-user", "Ann B"}}, "");
  Echo(strict, {{"x-user", "ann"}}, "");
  EXPECT_EQ(RecordsOf(trusting, "Kernels.Rmse", 1)[0].identity, "header:Ann B");
  EXPECT_EQ(RecordsOf(strict, "Kernels.Rmse", 1)[0].identity, "anonymous");
}

TEST(Metadata, WithoutTheNamedHeaderNobodyIsAnybody) {
  TestServer::Options options;
  options.rpc.identity_header = "x-user";
  TestServer server(options);
  const std::vector<std::pair<std::vector<std::string>, std::string>> all{
      {{}, "missing"},
      {{""}, "empty"},
      {{"ann", "bob"}, "there 2 times"},
      {{"ann", "ann"}, "there 2 times"},
      {{std::string(257, 'u')}, "257 characters long"}};
  for (const auto& [values, told] : all) {
    grpc::ClientContext unary;
    RawStream raw(server.Connect());
    for (const auto& value : values) {
      unary.AddMetadata("x-user", value);
      raw.context.AddMetadata("x-user", value);
    }
    v1::DescribeResponse response;
    ExpectError(v1::Device::NewStub(server.Connect())->Describe(&unary, {}, &response),
                grpc::StatusCode::UNAUTHENTICATED, "IDENTITY", "x-user", told);
    EXPECT_FALSE(raw.Open(TransposeOpen(v1::DTYPE_F32, {64})));
    ExpectError(raw.End(), grpc::StatusCode::UNAUTHENTICATED, "IDENTITY", "x-user", told);
  }
  for (const auto& record : RecordsOf(server, "Kernels.Execute", all.size())) EXPECT_EQ(record.identity, "");
  server.ExpectIdle();
}

class Records : public OnBoth {};
TILEWIRE_ON_BOTH(Records);

TEST_P(Records, TellWhatACallDid) {
  TestServer server(device(), {});
  const std::string data = Floats(200'000, 1);
  {
    RawStream raw(server.Connect());
    ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, {200, 1000})));
    EXPECT_EQ(raw.opened.job().find(raw.opened.instance() + "-"), 0u);
    EXPECT_EQ(raw.opened.max_streams(), 1u);
    ASSERT_EQ(raw.opened.endpoints_size(), 1);
    EXPECT_EQ(raw.opened.endpoints(0), server.address());
    ASSERT_TRUE(raw.SendAll(0, data));
    ASSERT_TRUE(raw.End().ok());
    const auto record = RecordsOf(server, "Kernels.Execute", 1)[0];
    EXPECT_EQ(record.operation, "transpose");
    EXPECT_EQ(record.job, raw.opened.job());
    EXPECT_TRUE(record.status.ok());
    EXPECT_EQ(record.bytes_in, 800'000u);
    EXPECT_EQ(record.bytes_out, 800'000u);
    EXPECT_NE(record.peer, "");
    EXPECT_EQ(record.timing.blocks, 13u);
    EXPECT_EQ(record.timing.streams, 1u);
    EXPECT_GT(record.timing.wall_us, 0);
    double longest = 0, longest_at_work = 0, sum = 0;
    for (int stage = 1; stage < static_cast<int>(Stage::kOther); ++stage) {
      const double took = std::max(0.0, record.timing.of(static_cast<Stage>(stage)));
      longest = std::max(longest, took);
      if (static_cast<Stage>(stage) != Stage::kQueue) longest_at_work = std::max(longest_at_work, took);
      sum += took;
    }
    const double covered = record.timing.wall_us - record.timing.of(Stage::kOther);
    EXPECT_GE(covered, longest - 1e-3) << "to the call's end, as its wall time is";
    EXPECT_LE(covered, sum + 1e-3);
    EXPECT_EQ(record.timing.bottleneck == "other", record.timing.of(Stage::kOther) > longest_at_work);
    EXPECT_GE(record.timing.of(Stage::kKernel), 0);
    EXPECT_EQ(record.timing.of(Stage::kH2D) >= 0, staged());
    EXPECT_EQ(record.timing.of(Stage::kD2H) >= 0, staged());
  }
  RawStream half(server.Connect());
  ASSERT_TRUE(half.Open(TransposeOpen(v1::DTYPE_F32, {200, 1000})));
  ASSERT_TRUE(half.SendAll(0, data, 1 << 16, 0, 128 << 10));
  EXPECT_FALSE(half.End().ok());
  const auto record = RecordsOf(server, "Kernels.Execute", 2)[1];
  EXPECT_EQ(record.bytes_in, uint64_t{128} << 10) << "also of failed calls";
  EXPECT_EQ(record.bytes_out, 0u);
  EXPECT_EQ(record.status.reason(), "BYTES_MISSING");
  ExpectUnharmed(server);
}

TEST_P(Records, TraceReturnsSpansWithinTheCall) {
  TestServer server(device(), {});
  const std::string data = Floats(200'000, 1);
  auto open = TransposeOpen(v1::DTYPE_F32, {200, 1000});
  open.mutable_options()->set_trace(true);
  RawStream raw(server.Connect());
  ASSERT_TRUE(raw.Open(open));
  ASSERT_TRUE(raw.SendAll(0, data, 65'536));
  ASSERT_TRUE(raw.End().ok());
  std::map<int, int> stages;
  for (const auto& span : raw.result.timing().spans()) {
    ++stages[span.stage()];
    EXPECT_GE(span.begin_us(), 0);
    EXPECT_GE(span.end_us(), span.begin_us());
    EXPECT_LE(span.end_us(), raw.result.timing().wall_us());
  }
  EXPECT_GE(stages[v1::STAGE_RECEIVE], 13);
  EXPECT_EQ(stages[v1::STAGE_STAGE], 13);
  EXPECT_GE(stages[v1::STAGE_KERNEL], 1);
  EXPECT_GE(stages[v1::STAGE_SEND], 1);
  EXPECT_EQ(stages[v1::STAGE_H2D], staged() ? 13 : 0);
  EXPECT_EQ(stages[v1::STAGE_D2H], staged() ? 13 : 0);
}

TEST(Describe, TellsWhatTheServerIs) {
  TestServer::Options options;
  options.rpc.version = "9.8.7";
  TestServer server(options);
  grpc::ClientContext context;
  v1::DescribeResponse response;
  ASSERT_TRUE(v1::Device::NewStub(server.Connect())->Describe(&context, {}, &response).ok());
  EXPECT_EQ(response.version(), "9.8.7");
  EXPECT_EQ(response.instance(), server.engine().instance());
  std::vector<std::string> versions;
  for (const Descriptor* const descriptor : rpc::Operations())
    versions.emplace_back(descriptor->numeric_version);
  EXPECT_THAT(response.numeric_versions(), ::testing::ElementsAreArray(versions));
  EXPECT_THAT(versions, ::testing::IsSupersetOf({"rmse.1", "transpose.1", "gaussian.1", "compare.1"}))
      << "what clients rely on, whatever else is added";
  ASSERT_EQ(response.devices_size(), 1);
  EXPECT_EQ(response.devices(0).id(), "cpu");
  EXPECT_EQ(response.limits().block_bytes(), 64u << 10);
  EXPECT_EQ(response.limits().max_unary_bytes(), 4u << 20);
  EXPECT_EQ(response.budgets().device_bytes(), 256u << 20);
  EXPECT_EQ(response.budgets().jobs_in_flight(), 0u);
}

TEST(Reflection, OnlyWhenAskedFor) {
  for (const bool on : {false, true}) {
    TestServer::Options options;
    options.rpc.reflection = on;
    TestServer server(options);
    ByteCall call(server.Connect(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
    call.Start();
    call.Write(std::string("\x3a\x01*"));  // list_services: "*"
    std::string reply;
    const bool answered = call.Read(&reply);
    EXPECT_EQ(answered, on);
    if (on) {
      EXPECT_NE(reply.find("tilewire.v1.Kernels"), std::string::npos);
      call.WritesDone();
    } else {
      EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
    }
  }
}

}  // namespace
}  // namespace tilewire::testing
