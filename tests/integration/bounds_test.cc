// What one client may make the server hold or hide is bounded.
#include "tests/integration/helpers.h"
#include "tests/integration/server_fixture.h"

namespace tilewire::testing {
namespace {

// Parsed, a list of small numbers takes many times its bytes; no message without array bytes needs 64 KiB.
TEST(Bounds, AnOpenOverTheHeaderLimitIsRefusedUnparsed) {
  TestServer server;
  v1::Open open = TransposeOpen(v1::DTYPE_F32, {4, 5});
  for (int i = 0; i < 70'000; ++i) open.mutable_transpose()->add_axes(1);
  RawStream raw(server.Connect());
  EXPECT_FALSE(raw.Open(open));
  ExpectError(raw.End(), kExhausted, "LIMIT", "open", "*", "65536");
  EXPECT_EQ(server.engine().stats().jobs_admitted, 0u);
  ExpectUnharmed(server);
}

TEST(Bounds, AUnaryHeaderOverTheLimitIsRefusedUnparsed) {
  TestServer server;
  v1::RmseRequest request = RmseCall({4, 5}, Floats(20, 1), Floats(20, 2));
  for (int i = 0; i < 70'000; ++i) request.mutable_op()->add_axes(1);
  grpc::ClientContext context;
  v1::RmseResponse response;
  const auto stub = v1::Kernels::NewStub(server.Connect());
  ExpectError(stub->Rmse(&context, request, &response), kExhausted, "LIMIT", "request without operand data",
              "*", "65536");
  ExpectUnharmed(server);
}

// The server's own probe is neither logged nor counted; nobody else gets out of the log by looking like it.
TEST(Bounds, NobodyPassesForTheServersOwnProbe) {
  TestServer server;
  const auto stub = v1::Device::NewStub(server.Connect());
  grpc::ClientContext context;
  context.AddMetadata("x-tilewire-probe", "0123456789abcdef");
  v1::DescribeResponse response;
  ASSERT_TRUE(stub->Describe(&context, {}, &response).ok());
  server.ExpectIdle();
  ASSERT_EQ(server.observer().records().size(), 1u);
  EXPECT_EQ(server.observer().records()[0].method, "Device.Describe");
}

TEST(Bounds, JobIdsAreNotToBeGuessed) {
  TestServer server;
  std::string ids[2];
  for (std::string& id : ids) {
    RawStream raw(server.Connect());
    ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, {4, 5})));
    id = raw.opened.job();
    EXPECT_TRUE(id.starts_with(raw.opened.instance() + "-"));
    EXPECT_EQ(id.size(), raw.opened.instance().size() + 1 + 16);
    raw.context.TryCancel();
    (void)raw.Drain();
  }
  EXPECT_NE(ids[0], ids[1]);
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing
