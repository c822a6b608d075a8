// The answer depends on no block size, no number of lanes, no kind of memory and not on overlap; and how much
// a unary call may carry and hold.
#include <future>

#include "tests/integration/helpers.h"
#include "tests/unit/held_device.h"

namespace tilewire::testing {
namespace {

struct Sizes {
  int64_t block_bytes;
  int lanes;
  bool overlap = true;
};

class SameBits : public ::testing::TestWithParam<std::tuple<Where, Sizes>> {};

TEST_P(SameBits, WhateverTheBlocksAndLanes) {
  const auto [where, sizes] = GetParam();
  TestServer::Options options;
  options.engine.block_bytes = sizes.block_bytes;
  options.engine.lanes = sizes.lanes;
  options.engine.overlap = sizes.overlap;
  options.engine.device_bytes = int64_t{1} << 30;
  options.engine.pinned_bytes = int64_t{1} << 30;
  TestServer server(DeviceAt(where), options);
  const std::vector<int64_t> shape{257, 4099};
  const std::string a = Floats(257 * 4099, 1), b = Floats(257 * 4099, 2);
  for (const std::vector<int>& axes : {std::vector<int>{}, std::vector<int>{0}, std::vector<int>{1}}) {
    RawStream raw(server.Connect());
    ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, shape, axes)));
    EXPECT_EQ(raw.opened.block_bytes(), static_cast<uint64_t>(sizes.block_bytes));
    ASSERT_TRUE(raw.SendAll(0, a, 300'001));
    ASSERT_TRUE(raw.SendAll(1, b));
    const auto status = raw.End();
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(raw.output == HostRmse(a, b, DType::kF32, shape, axes));
    EXPECT_EQ(raw.result.timing().has_h2d_us(), where == Where::kStaged);
  }
  for (const std::vector<int>& axes : {std::vector<int>{1, 0}, std::vector<int>{0, 1}}) {
    RawStream raw(server.Connect());
    ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, shape, axes)));
    std::thread writer([&] {
      raw.SendAll(0, a, 100'003);
      raw.stream->WritesDone();
    });
    const auto status = raw.Drain();
    writer.join();
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(raw.output == HostTranspose(a, DType::kF32, shape, axes));
    EXPECT_EQ(raw.result.timing().has_d2h_us(), where == Where::kStaged);
  }
  // Elements are cut by blocks of 4099 bytes and by messages of 100,003.
  for (const v1::DType dtype : {v1::DTYPE_F32, v1::DTYPE_F64}) {
    const std::string in = a.substr(0, a.size() / 8 * 8);
    const int64_t count = static_cast<int64_t>(in.size()) / SizeOf(static_cast<DType>(dtype));
    RawStream raw(server.Connect());
    ASSERT_TRUE(raw.Open(GaussianOpen(dtype, {count}, 0.5, 0.125)));
    std::thread writer([&] {
      raw.SendAll(0, in, 100'003);
      raw.stream->WritesDone();
    });
    const auto status = raw.Drain();
    writer.join();
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(raw.output == HostGaussian(in, static_cast<DType>(dtype), {count}, 0.5, 0.125));
    EXPECT_EQ(raw.result.numeric_version(), "gaussian.1");
    EXPECT_EQ(raw.result.timing().has_d2h_us(), where == Where::kStaged);
  }
  ExpectUnharmed(server);
}

// Three staging blocks carry 56 blocks of output, so each must come back before the reply is sent.
TEST(UnarySizes, RepliesOfMoreBlocksThanStagingHas) {
  TestServer server(DeviceAt(Where::kStaged), {});
  const std::vector<int64_t> shape{900, 1009};
  const std::string in = Floats(900 * 1009, 3);
  v1::TransposeRequest request;
  SetSpec(request.mutable_input()->mutable_spec(), v1::DTYPE_F32, shape);
  request.mutable_input()->set_data(in);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::TransposeResponse response;
  const auto status = v1::Kernels::NewStub(server.Connect())->Transpose(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(response.result().data() == HostTranspose(in, DType::kF32, shape));
  ExpectUnharmed(server);
}

TEST(UnarySizes, AMessageOfExactlyFourMebibytesIsTaken) {
  TestServer server;
  constexpr int64_t kCount =
      (4 << 20) / 2 - 20;  // of bytes, an operand: about what the rest of the message leaves
  const auto call = [](int64_t count) {
    const std::string data(count, 'x');
    v1::RmseRequest request = RmseCall({count}, data, data);
    for (auto* operand : {request.mutable_a(), request.mutable_b()})
      operand->mutable_spec()->set_dtype(v1::DTYPE_U8);
    return request;
  };
  const auto beside = static_cast<int64_t>(call(kCount).ByteSizeLong()) - 2 * kCount;
  const v1::RmseRequest request = call(((4 << 20) - beside) / 2);
  ASSERT_EQ(request.ByteSizeLong(), size_t{4} << 20);
  grpc::ClientContext context;
  v1::RmseResponse response;
  const auto status = v1::Kernels::NewStub(server.Connect())->Rmse(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  server.ExpectIdle();
}

TEST(UnarySizes, WhatAJobHasTakenInIsHeldNoLonger) {
  const auto gate = std::make_shared<Gate>();
  TestServer::Options options;
  options.rpc.receive.quota = 16 << 20;  // of which calls may hold 4 MiB
  TestServer server(std::make_unique<HeldDevice>(DeviceAt(Where::kHost), gate), options);
  const std::string data = Floats(380'000, 3);  // two operands are 3 MB
  const auto call = [&] {
    grpc::ClientContext context;
    v1::RmseResponse response;
    return v1::Kernels::NewStub(server.Connect())->Rmse(&context, RmseCall({380'000}, data, data), &response);
  };
  const auto in_flight = [&] { return server.engine().stats().jobs_in_flight; };
  gate->Close();
  auto first = std::async(std::launch::async, call);
  EXPECT_TRUE(Eventually([&] { return in_flight() == 1; }));
  std::future<grpc::Status> second;
  EXPECT_TRUE(Eventually([&] {  // until the first's bytes are with its job, this one is told to come back
    if (!second.valid()) second = std::async(std::launch::async, call);
    if (in_flight() == 2) return true;
    if (second.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
      ExpectError(second.get(), kExhausted, "BUSY");
    return false;
  }));
  gate->Open();
  EXPECT_TRUE(first.get().ok());
  if (second.valid()) {
    EXPECT_TRUE(second.get().ok());
  }
  ExpectUnharmed(server);
}

std::string NameOf(const ::testing::TestParamInfo<std::tuple<Where, Sizes>>& test) {
  const auto [where, sizes] = test.param;
  return (where == Where::kHost ? "Host" : "Staged") + std::to_string(sizes.block_bytes) + "x" +
         std::to_string(sizes.lanes) + (sizes.overlap ? "" : "NoOverlap");
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, SameBits,
    ::testing::Combine(::testing::Values(Where::kHost, Where::kStaged),
                       ::testing::Values(Sizes{4 << 10, 1}, Sizes{4 << 10, 8}, Sizes{4099, 3},
                                         Sizes{64 << 10, 8}, Sizes{1 << 20, 2}, Sizes{4 << 20, 4},
                                         Sizes{64 << 20, 1}, Sizes{64 << 20, 8}, Sizes{64 << 10, 4, false})),
    NameOf);

}  // namespace
}  // namespace tilewire::testing
