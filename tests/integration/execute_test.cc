// Streams end to end: every way of sending the same bytes gives the same answer.
#include <random>

#include "tests/integration/server_fixture.h"

namespace tilewire::testing {
namespace {

TEST(Unary, RmseAndTransposeGiveTheHostKernelsBits) {
  TestServer server;
  const auto stub = v1::Kernels::NewStub(server.Connect());
  const std::string a = Floats(60 * 70, 1), b = Floats(60 * 70, 2);
  {
    grpc::ClientContext context;
    context.AddMetadata("x-request-id", "abc-1");
    v1::RmseRequest request;
    request.mutable_op()->add_axes(-1);
    SetSpec(request.mutable_a()->mutable_spec(), v1::DTYPE_F32, {60, 70});
    SetSpec(request.mutable_b()->mutable_spec(), v1::DTYPE_F32, {60, 70});
    request.mutable_a()->set_data(a);
    request.mutable_b()->set_data(b);
    v1::RmseResponse response;
    const auto status = stub->Rmse(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.result().data(), HostRmse(a, b, DType::kF32, {60, 70}, {1}));
    EXPECT_EQ(response.numeric_version(), "rmse.1");
    EXPECT_EQ(response.timing().bytes_in(), a.size() + b.size());
    EXPECT_GT(response.timing().wall_us(), 0);
    EXPECT_EQ(context.GetServerInitialMetadata().find("x-request-id")->second, "abc-1");
  }
  {
    grpc::ClientContext context;
    v1::TransposeRequest request;
    SetSpec(request.mutable_input()->mutable_spec(), v1::DTYPE_F32, {60, 70});
    request.mutable_input()->set_data(a);
    v1::TransposeResponse response;
    const auto status = stub->Transpose(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.result().data(), HostTranspose(a, DType::kF32, {60, 70}));
    EXPECT_EQ(response.result().spec().shape(0), 70);
  }
  server.ExpectIdle();
}

struct Sending {
  const char* name;
  size_t step;
  bool interleaved, shuffled;
};

class ExecuteSending : public ::testing::TestWithParam<Sending> {};

TEST_P(ExecuteSending, RmseHasTheSameBits) {
  TestServer server;
  const std::vector<int64_t> shape{301, 1009};
  const std::string a = Floats(301 * 1009, 3), b = Floats(301 * 1009, 4);
  const std::string want = HostRmse(a, b, DType::kF32, shape);
  const Sending how = GetParam();
  RawStream raw(server.Connect());
  ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, shape)));
  if (how.interleaved) {
    std::vector<size_t> starts;
    for (size_t at = 0; at < a.size(); at += raw.opened.block_bytes()) starts.push_back(at);
    if (how.shuffled) std::shuffle(starts.begin(), starts.end(), std::mt19937(5));
    for (const size_t at : starts) {
      ASSERT_TRUE(raw.SendAll(0, a, how.step, at, at + raw.opened.block_bytes()));
      ASSERT_TRUE(raw.SendAll(1, b, how.step, at, at + raw.opened.block_bytes()));
    }
  } else {
    ASSERT_TRUE(raw.SendAll(0, a, how.step));
    ASSERT_TRUE(raw.SendAll(1, b, how.step));
  }
  const auto status = raw.End();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(raw.output, want);
  EXPECT_EQ(raw.result.timing().bytes_in(), a.size() + b.size());
  EXPECT_TRUE(raw.result.timing().has_receive_us());
  server.ExpectIdle();
}

INSTANTIATE_TEST_SUITE_P(Ways, ExecuteSending,
                         ::testing::Values(Sending{"AThenB", 1 << 20, false, false},
                                           Sending{"AThenBSmall", 1111, false, false},
                                           Sending{"Interleaved", 1 << 16, true, false},
                                           Sending{"InterleavedSmall", 1000, true, false},
                                           Sending{"Shuffled", 1 << 16, true, true},
                                           Sending{"ShuffledSmall", 777, true, true}),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(Execute, TransposeStreamsItsOutput) {
  TestServer server;
  for (const auto& [shape, axes] : std::vector<std::pair<std::vector<int64_t>, std::vector<int>>>{
           {{700, 900}, {1, 0}}, {{30, 100, 211}, {0, 2, 1}}, {{630000}, {0}}, {{7, 300, 300}, {2, 0, 1}}}) {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    const std::string in = Floats(count, 9);
    v1::Open open = TransposeOpen(v1::DTYPE_F32, shape, axes);
    open.mutable_options()->set_output_chunk_bytes(50'000);
    RawStream raw(server.Connect());
    ASSERT_TRUE(raw.Open(open));
    // Writes and reads at once: with the leading axis kept, output arrives before the input is through.
    std::thread writer([&] {
      raw.SendAll(0, in, 100'000);
      raw.stream->WritesDone();
    });
    const auto status = raw.Drain();
    writer.join();
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(raw.output == HostTranspose(in, DType::kF32, shape, axes));
    EXPECT_EQ(raw.result.timing().bytes_out(), in.size());
  }
  server.ExpectIdle();
}

}  // namespace
}  // namespace tilewire::testing
