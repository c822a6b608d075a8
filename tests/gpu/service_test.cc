// The whole service on the GPU: same calls, same bits as on the CPU device.
#include <array>
#include <map>
#include <random>

#include "server/base/limits.h"
#include "server/engine/device/cuda/device.h"
#include "tests/integration/server_fixture.h"

namespace tilewire::testing {
namespace {

class GpuService : public ::testing::Test {
 protected:
  void SetUp() override {
    if (engine::CudaDeviceCount() == 0) GTEST_SKIP() << "no CUDA device";
  }
  static std::unique_ptr<engine::Device> Gpu() { return engine::OpenCudaDevice(0).value(); }
  static TestServer::Options With(int64_t block_bytes, int lanes) {
    TestServer::Options options;
    options.engine.block_bytes = block_bytes;
    options.engine.lanes = lanes;
    options.engine.device_bytes = 2 * kGiB;
    options.engine.pinned_bytes = 1 << 30;
    return options;
  }
};

std::string Call(const TestServer& server, const v1::Open& open, const std::vector<std::string>& operands) {
  RawStream raw(server.Connect());
  if (!raw.Open(open)) return raw.End().error_message();
  std::thread writer([&] {
    for (size_t i = 0; i < operands.size(); ++i) raw.SendAll(static_cast<uint32_t>(i), operands[i], 300'000);
    raw.stream->WritesDone();
  });
  const grpc::Status status = raw.Drain();
  writer.join();
  return status.ok() ? raw.output : "failed: " + status.error_message();
}

void CallFromManyThreads(const TestServer& server, const std::string& a, const std::string& b,
                         const std::string& want, const std::string& device) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      const auto stub = v1::Kernels::NewStub(server.Connect());
      for (int i = 0; i < 100; ++i) {
        grpc::ClientContext context;
        v1::RmseRequest request;
        SetSpec(request.mutable_a()->mutable_spec(), v1::DTYPE_F32, {512});
        SetSpec(request.mutable_b()->mutable_spec(), v1::DTYPE_F32, {512});
        request.mutable_a()->set_data(a);
        request.mutable_b()->set_data(b);
        v1::RmseResponse response;
        const auto status = stub->Rmse(&context, request, &response);
        EXPECT_TRUE(status.ok()) << status.error_message();
        EXPECT_TRUE(response.result().data() == want);
        EXPECT_EQ(response.timing().device(), device);
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST_F(GpuService, BitsAreTheCpusForEveryBlockSizeAndLaneCount) {
  const std::vector<int64_t> shape{37, 101, 203};
  const std::string a = Floats(37 * 101 * 203, 1), b = Floats(37 * 101 * 203, 2);
  for (const int64_t block : {4 << 10, 64 << 10, 1 << 20, 64 << 20})
    for (const int lanes : {1, 3, 8}) {
      TestServer server(Gpu(), With(block, lanes));
      for (const std::vector<int>& axes : std::vector<std::vector<int>>{{}, {0}, {1}, {2}, {0, 2}, {1, 2}})
        EXPECT_TRUE(Call(server, RmseOpen(v1::DTYPE_F32, shape, axes), {a, b}) ==
                    HostRmse(a, b, DType::kF32, shape, axes))
            << "block " << block << " lanes " << lanes;
      for (const std::vector<int>& axes :
           std::vector<std::vector<int>>{{2, 1, 0}, {0, 2, 1}, {1, 0, 2}, {0, 1, 2}})
        EXPECT_TRUE(Call(server, TransposeOpen(v1::DTYPE_F32, shape, axes), {a}) ==
                    HostTranspose(a, DType::kF32, shape, axes))
            << "block " << block << " lanes " << lanes;
      // 760,633 elements, not a multiple of anything: remainders of ranges, blocks and messages.
      for (const v1::DType dtype : {v1::DTYPE_F32, v1::DTYPE_F64}) {
        const int64_t count = static_cast<int64_t>(a.size()) / SizeOf(static_cast<DType>(dtype));
        const std::string in = a.substr(0, static_cast<size_t>(count) * SizeOf(static_cast<DType>(dtype)));
        EXPECT_TRUE(Call(server, GaussianOpen(dtype, {count}, 0.5, 0.125), {in}) ==
                    HostGaussian(in, static_cast<DType>(dtype), {count}, 0.5, 0.125))
            << "block " << block << " lanes " << lanes;
      }
      server.ExpectIdle();
    }
}

TEST_F(GpuService, EveryDtypeAtRandomShapes) {
  TestServer server(Gpu(), With(256 << 10, 4));
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    std::vector<int64_t> shape(random() % 5);
    int64_t count = 1;
    for (auto& extent : shape) count *= extent = 1 + random() % 40;
    const DTypeInfo& info = AllDTypes()[random() % AllDTypes().size()];
    const std::string a = Bytes(count * info.size, random()), b = Bytes(count * info.size, random());
    const auto dtype = static_cast<v1::DType>(info.dtype);
    std::vector<int> axes(shape.size());
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
    std::shuffle(axes.begin(), axes.end(), random);
    EXPECT_TRUE(Call(server, TransposeOpen(dtype, shape, axes), {a}) ==
                HostTranspose(a, info.dtype, shape, axes));
    if (info.dtype == DType::kF32 || info.dtype == DType::kF64) {  // any bits: NaN, infinities, subnormals
      EXPECT_TRUE(Call(server, GaussianOpen(dtype, shape, -0.25, 3), {a}) ==
                  HostGaussian(a, info.dtype, shape, -0.25, 3))
          << info.name << " round " << round;
    }
    if (!IsReal(info.dtype)) continue;
    axes.resize(axes.empty() ? 0 : random() % (axes.size() + 1));
    EXPECT_TRUE(Call(server, RmseOpen(dtype, shape, axes), {a, b}) == HostRmse(a, b, info.dtype, shape, axes))
        << info.name << " round " << round;
  }
  server.ExpectIdle();
}

TEST_F(GpuService, GaussianOutputLeavesWhileInputStillArrives) {
  TestServer server(Gpu(), With(1 << 20, 4));
  const int64_t range =
      gaussian::Plan::Make(MakeSpec(DType::kF32, std::array{int64_t{1} << 24}).value(), 0, 1)->range(0).end;
  const int64_t elements = 5 * range + 7;
  const std::string in = Floats(static_cast<size_t>(elements), 3);
  RawStream raw(server.Connect());
  ASSERT_TRUE(raw.Open(GaussianOpen(v1::DTYPE_F32, {elements}, 0, 1)));
  const auto half = static_cast<size_t>(range) * 4 * 3;
  ASSERT_TRUE(raw.SendAll(0, in, 1 << 20, 0, half));
  std::string got;
  v1::ExecuteResponse response;
  while (got.size() < half) {
    ASSERT_TRUE(raw.stream->Read(&response));
    ASSERT_TRUE(response.has_chunk());
    got += response.chunk().data();
  }
  ASSERT_TRUE(raw.SendAll(0, in, 1 << 20, half));
  raw.stream->WritesDone();
  while (raw.stream->Read(&response))
    if (response.has_chunk()) got += response.chunk().data();
  const auto status = raw.stream->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(got == HostGaussian(in, DType::kF32, {elements}, 0, 1));
  server.ExpectIdle();
}

v1::DescribeKernelsResponse Kernels(const TestServer& server, const v1::DescribeKernelsRequest& request) {
  grpc::ClientContext context;
  v1::DescribeKernelsResponse response;
  const auto status = v1::Device::NewStub(server.Connect())->DescribeKernels(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

/// What holds for every launch that a device can run.
void ExpectPlausible(const v1::KernelLaunch& launch) {
  SCOPED_TRACE(launch.operation() + " " + launch.part() + " " + launch.name());
  EXPECT_NE(launch.name(), "");
  EXPECT_GT(launch.registers(), 0u);
  EXPECT_LE(launch.registers(), 255u);
  EXPECT_GE(launch.binary_version(), 75u);
  EXPECT_GE(launch.ptx_version(), 50u);
  const uint64_t threads = launch.block().x() * launch.block().y() * launch.block().z();
  EXPECT_GT(threads, 0u);
  EXPECT_LE(threads, launch.max_threads_per_block());
  EXPECT_GT(launch.grid().x() * launch.grid().y() * launch.grid().z(), 0u);
  EXPECT_GT(launch.blocks_per_multiprocessor(), 0u) << "it could not run";
  EXPECT_GT(launch.occupancy(), 0);
  EXPECT_LE(launch.occupancy(), 1);
  EXPECT_LE(launch.static_shared_bytes() + launch.dynamic_shared_bytes(), 228u << 10);
}

TEST_F(GpuService, TheCatalogueDescribesEveryGroup) {
  TestServer server(Gpu(), With(1 << 20, 2));
  const auto catalogue = Kernels(server, {});
  EXPECT_EQ(catalogue.device(), "cuda:0");
  std::map<std::string, int> groups;
  for (const auto& launch : catalogue.kernels()) {
    ++groups[launch.group()];
    ExpectPlausible(launch);
  }
  EXPECT_GE(groups["rmse"], 2 * 11) << "ranges and finish of every dtype";
  EXPECT_GE(groups["transpose"], 14);
  EXPECT_GE(groups["gaussian"], 6);
  for (const char* ladder : {"ladder/rmse", "ladder/batched", "ladder/copy", "ladder/transpose"})
    EXPECT_GE(groups[ladder], 2) << ladder;
  EXPECT_EQ(Kernels(server, {}).SerializeAsString(), catalogue.SerializeAsString());
  server.ExpectIdle();
}

TEST_F(GpuService, LaunchesFollowTheShape) {
  TestServer server(Gpu(), With(1 << 20, 2));
  const auto blocks = [&](int64_t elements) {
    v1::DescribeKernelsRequest request;
    request.mutable_gaussian_pdf()->set_stddev(1);
    SetSpec(request.add_operands(), v1::DTYPE_F32, {elements});
    const auto response = Kernels(server, request);
    EXPECT_GE(response.kernels_size(), 1);
    if (response.kernels_size() == 0) return uint64_t{0};
    ExpectPlausible(response.kernels(0));
    EXPECT_EQ(response.kernels(0).group(), "gaussian");
    return response.kernels(0).grid().x();
  };
  EXPECT_GT(blocks(1 << 18), blocks(1));
  v1::DescribeKernelsRequest rmse;
  rmse.mutable_rmse();
  for (int i = 0; i < 2; ++i) SetSpec(rmse.add_operands(), v1::DTYPE_U8, {5'000'001});
  const auto response = Kernels(server, rmse);
  ASSERT_GE(response.kernels_size(), 2);
  EXPECT_EQ(response.kernels(0).operation(), "rmse u8 (5000001)");
  EXPECT_EQ(response.kernels(response.kernels_size() - 1).part(), "finish");
  for (const auto& launch : response.kernels()) ExpectPlausible(launch);
  // Nothing was launched: the same answers as before.
  const std::string a = Floats(4096, 1), b = Floats(4096, 2);
  EXPECT_TRUE(Call(server, RmseOpen(v1::DTYPE_F32, {4096}), {a, b}) == HostRmse(a, b, DType::kF32, {4096}));
  server.ExpectIdle();
}

/// By kernels, and by the host beside them.
TEST_F(GpuService, UnaryCallsFromManyThreads) {
  const std::string a = Floats(512, 1), b = Floats(512, 2), want = HostRmse(a, b, DType::kF32, {512});
  for (const int64_t host_bytes : {int64_t{0}, 8 * kKiB}) {
    TestServer::Options options = With(4 << 20, 4);
    options.engine.host_bytes = host_bytes;
    TestServer server(Gpu(), options);
    CallFromManyThreads(server, a, b, want, host_bytes > 0 ? "cpu" : "cuda:0");
    server.ExpectIdle();
  }
}

TEST_F(GpuService, CancelledUploadsLeaveNothingBehind) {
  TestServer server(Gpu(), With(1 << 20, 4));
  const std::string a = Floats(8 << 20, 1);
  for (int i = 0; i < 20; ++i) {
    RawStream raw(server.Connect());
    ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, {8 << 20})));
    raw.SendAll(0, a, 1 << 20, 0, static_cast<size_t>(i) * 1'500'000);
    raw.context.TryCancel();
    EXPECT_FALSE(raw.Drain().ok());
  }
  server.ExpectIdle();
  EXPECT_TRUE(Call(server, RmseOpen(v1::DTYPE_F32, {8 << 20}), {a, a}) == std::string(8, '\0'));
}

}  // namespace
}  // namespace tilewire::testing
