// Device.DescribeKernels over sockets: the CPU has none, wrong questions are named, a device that describes
// is passed on field by field. (tests/gpu/service_test.cc asks a real one.)
#include <atomic>
#include <future>

#include "tests/integration/helpers.h"

namespace tilewire::testing {
namespace {

/// The CPU device with one made-up kernel.
class DescribingDevice final : public engine::Device {
 public:
  std::shared_future<void> gate;  ///< waited for before an answer, where set
  std::atomic<int> asked{0};

  const engine::DeviceFacts& facts() const override { return cpu_->facts(); }
  int64_t FreeBytes() const override { return cpu_->FreeBytes(); }
  void SetDeviceBudget(int64_t bytes) override { cpu_->SetDeviceBudget(bytes); }
  void SetPinnedBudget(int64_t bytes) override { cpu_->SetPinnedBudget(bytes); }
  int64_t cached_bytes() const override { return cpu_->cached_bytes(); }
  Result<engine::Memory> AllocateDevice(size_t bytes) override { return cpu_->AllocateDevice(bytes); }
  Result<engine::Memory> AllocatePinned(size_t bytes) override { return cpu_->AllocatePinned(bytes); }
  Result<engine::Memory> PinHost(std::byte* data, size_t bytes, bool writable) override {
    return cpu_->PinHost(data, bytes, writable);
  }
  Result<engine::Memory> OpenShared(std::string_view handle) override { return cpu_->OpenShared(handle); }
  Result<std::unique_ptr<engine::Lane>> MakeLane(engine::LanePriority priority) override {
    return cpu_->MakeLane(priority);
  }
  Status health() const override { return {}; }
  Result<std::vector<KernelInfo>> DescribeWork(const engine::Work&) override {
    ++asked;
    if (gate.valid()) gate.wait();
    return std::vector<KernelInfo>{{.name = "tilewire::made::Up<float>",
                                    .registers = 31,
                                    .local_bytes = 32,
                                    .static_shared_bytes = 33,
                                    .const_bytes = 34,
                                    .max_threads_per_block = 1024,
                                    .binary_version = 90,
                                    .ptx_version = 75,
                                    .grid = {int64_t{1} << 31, 2, 3},
                                    .block = {64, 8, 1},
                                    .dynamic_shared_bytes = 35,
                                    .blocks_per_multiprocessor = 4,
                                    .occupancy = 0.75}};
  }
  Result<std::vector<engine::LadderKernel>> DescribeLadder() override { return {}; }

 private:
  std::unique_ptr<engine::Device> cpu_ = engine::OpenCpuDevice(2);
};

grpc::Status Ask(const TestServer& server, const v1::DescribeKernelsRequest& request,
                 v1::DescribeKernelsResponse* response) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  return v1::Device::NewStub(server.Connect())->DescribeKernels(&context, request, response);
}

v1::DescribeKernelsRequest RmseQuestion(const std::vector<int64_t>& shape, const std::vector<int>& axes) {
  v1::DescribeKernelsRequest request;
  for (const int axis : axes) request.mutable_rmse()->add_axes(axis);
  request.mutable_rmse();
  for (int i = 0; i < 2; ++i) SetSpec(request.add_operands(), v1::DTYPE_F32, shape);
  return request;
}

TEST(Kernels, TheCpuSaysThatItHasNone) {
  TestServer server;
  for (const auto& request : {v1::DescribeKernelsRequest(), RmseQuestion({64, 64}, {})}) {
    v1::DescribeKernelsResponse response;
    const auto status = Ask(server, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.device(), "cpu");
    EXPECT_EQ(response.kernels_size(), 0);
  }
  EXPECT_EQ(server.engine().stats().jobs_admitted, 0u);
  ASSERT_TRUE(Eventually([&] { return server.observer().records().size() == 2; }));
  EXPECT_EQ(server.observer().records()[0].method, "Device.DescribeKernels");
  ExpectUnharmed(server);
}

TEST(Kernels, EveryFieldArrives) {
  TestServer server(std::make_unique<DescribingDevice>(), {});
  v1::DescribeKernelsResponse response;
  ASSERT_TRUE(Ask(server, RmseQuestion({100, 64}, {-1}), &response).ok());
  ASSERT_EQ(response.kernels_size(), 1) << "one range is one launch";
  const v1::KernelLaunch& launch = response.kernels(0);
  EXPECT_EQ(launch.group(), "rmse");
  EXPECT_EQ(launch.operation(), "rmse f32 (100, 64) axes -1");
  EXPECT_EQ(launch.part(), "whole");
  EXPECT_EQ(launch.name(), "tilewire::made::Up<float>");
  EXPECT_EQ(launch.registers(), 31u);
  EXPECT_EQ(launch.local_bytes(), 32u);
  EXPECT_EQ(launch.static_shared_bytes(), 33u);
  EXPECT_EQ(launch.const_bytes(), 34u);
  EXPECT_EQ(launch.dynamic_shared_bytes(), 35u);
  EXPECT_EQ(launch.max_threads_per_block(), 1024u);
  EXPECT_EQ(launch.binary_version(), 90u);
  EXPECT_EQ(launch.ptx_version(), 75u);
  EXPECT_EQ(launch.grid().x(), uint64_t{1} << 31);
  EXPECT_EQ(launch.grid().y(), 2u);
  EXPECT_EQ(launch.grid().z(), 3u);
  EXPECT_EQ(launch.block().x(), 64u);
  EXPECT_EQ(launch.block().y(), 8u);
  EXPECT_EQ(launch.block().z(), 1u);
  EXPECT_EQ(launch.blocks_per_multiprocessor(), 4u);
  EXPECT_EQ(launch.occupancy(), 0.75);

  v1::DescribeKernelsRequest transpose, gaussian;
  transpose.mutable_transpose()->add_axes(1);
  transpose.mutable_transpose()->add_axes(0);
  SetSpec(transpose.add_operands(), v1::DTYPE_C128, {3, 5});
  gaussian.mutable_gaussian_pdf()->set_stddev(2);
  SetSpec(gaussian.add_operands(), v1::DTYPE_F64, {7});
  ASSERT_TRUE(Ask(server, transpose, &response).ok());
  EXPECT_EQ(response.kernels(0).operation(), "transpose c128 (3, 5) axes 1 0");
  ASSERT_TRUE(Ask(server, gaussian, &response).ok());
  EXPECT_EQ(response.kernels(0).operation(), "gaussian_pdf f64 (7)");
  EXPECT_EQ(response.kernels(0).group(), "gaussian");
  ASSERT_TRUE(Ask(server, {}, &response).ok());
  EXPECT_GT(response.kernels_size(), 30) << "the catalogue";
}

TEST(Kernels, WrongQuestionsAreNamed) {
  TestServer server;
  const auto bad = [](const std::function<void(v1::DescribeKernelsRequest*)>& change) {
    v1::DescribeKernelsRequest request = RmseQuestion({4, 5}, {});
    change(&request);
    return request;
  };
  const std::vector<std::tuple<v1::DescribeKernelsRequest, std::string, std::string>> all{
      {bad([](auto* r) { r->clear_operation(); }), "operation", "not set"},
      {bad([](auto* r) { r->clear_operands(); }), "operands", "0 specs"},
      {bad([](auto* r) { r->mutable_transpose(); }), "operands", "2 specs"},
      {bad([](auto* r) { r->mutable_operands(1)->set_shape(0, 9); }), "b.shape", "(9, 5)"},
      {bad([](auto* r) { r->mutable_operands(0)->set_dtype(v1::DType(99)); }), "operands[0].dtype", "99"},
      {bad([](auto* r) { r->mutable_rmse()->add_axes(2); }), "axes", "2"},
  };
  v1::DescribeKernelsResponse response;
  for (const auto& [request, field, value] : all) {
    SCOPED_TRACE(field);
    ExpectError(Ask(server, request, &response), grpc::StatusCode::INVALID_ARGUMENT, "BAD_VALUE", field,
                value);
  }
  v1::DescribeKernelsRequest large = RmseQuestion(std::vector<int64_t>(40'000, int64_t{1} << 40), {});
  ExpectError(Ask(server, large, &response), grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT", "request");
  for (const std::string& bytes : {std::string("\x0a\xff"), std::string("\xff"), Bytes(100, 3)})
    ExpectError(ByteCall(server.Connect(), "/tilewire.v1.Device/DescribeKernels").Unary(bytes).status,
                grpc::StatusCode::INVALID_ARGUMENT, "BAD_MESSAGE");
  ExpectUnharmed(server);
}

TEST(Kernels, ASlowDeviceHoldsNobodyElseUp) {
  std::promise<void> open;
  auto device = std::make_unique<DescribingDevice>();
  DescribingDevice& described = *device;
  device->gate = open.get_future().share();
  TestServer::Options options;
  options.rpc.queues = 1;  // one thread for all calls
  TestServer server(std::move(device), options);
  std::thread asker([&] {
    v1::DescribeKernelsResponse response;
    EXPECT_TRUE(Ask(server, RmseQuestion({4}, {}), &response).ok());
    EXPECT_EQ(response.kernels_size(), 1);
  });
  EXPECT_TRUE(Eventually([&] { return described.asked == 1; }));
  ExpectGoodCalls(server);
  {
    // A client that does not wait ends its call; the answer comes later and is dropped.
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
    v1::DescribeKernelsResponse response;
    EXPECT_EQ(v1::Device::NewStub(server.Connect())->DescribeKernels(&context, {}, &response).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  open.set_value();
  asker.join();
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing
