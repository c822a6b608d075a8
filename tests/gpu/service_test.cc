// The whole service on the GPU: same calls, same bits as on the CPU device.
#include <random>

#include "server/engine/cuda_device.h"
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
    options.engine.device_bytes = 2 << 30;
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
    if (!IsReal(info.dtype)) continue;
    axes.resize(axes.empty() ? 0 : random() % (axes.size() + 1));
    EXPECT_TRUE(Call(server, RmseOpen(dtype, shape, axes), {a, b}) == HostRmse(a, b, info.dtype, shape, axes))
        << info.name << " round " << round;
  }
  server.ExpectIdle();
}

TEST_F(GpuService, UnaryCallsFromManyThreads) {
  TestServer server(Gpu(), With(4 << 20, 4));
  const std::string a = Floats(512, 1), b = Floats(512, 2), want = HostRmse(a, b, DType::kF32, {512});
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
      }
    });
  for (auto& thread : threads) thread.join();
  server.ExpectIdle();
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
