// Memory of the GPU that another process allocated: kernels read and write it where it is, and whatever is
// wrong about it harms nobody.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "server/base/limits.h"
#include "server/engine/device/cuda/device.h"
#include "tests/gpu/exporter.h"
#include "tests/gpu/region_problems.h"
#include "tests/unit/engine_regions_testing.h"

namespace tilewire::engine {
namespace {

using testing::Exporter;
using testing::ExporterCommand;
using testing::Part;
using testing::Problem;

/// Not a test but what Exporter runs.
TEST(CudaExporter, DISABLED_Serves) {
  if (!std::getenv(testing::kExporterVariable)) GTEST_SKIP() << "run by other tests only";
  char* data = nullptr;
  std::vector<char> bytes;
  for (ExporterCommand command; testing::ReadAll(testing::kExporterIn, &command, sizeof(command));) {
    uint64_t done = 0;
    if (command.kind == ExporterCommand::kAllocate) {
      cudaIpcMemHandle_t handle{};
      done = cudaMalloc(reinterpret_cast<void**>(&data), command.bytes) == cudaSuccess &&
             cudaIpcGetMemHandle(&handle, data) == cudaSuccess;
      testing::WriteAll(testing::kExporterOut, &done, sizeof(done));
      testing::WriteAll(testing::kExporterOut, &handle, sizeof(handle));
      continue;
    }
    bytes.resize(command.bytes);
    if (command.kind == ExporterCommand::kWrite) {
      done = testing::ReadAll(testing::kExporterIn, bytes.data(), bytes.size()) &&
             cudaMemcpy(data + command.offset, bytes.data(), bytes.size(), cudaMemcpyHostToDevice) ==
                 cudaSuccess &&
             cudaDeviceSynchronize() == cudaSuccess;
      testing::WriteAll(testing::kExporterOut, &done, sizeof(done));
    } else {
      ASSERT_EQ(cudaMemcpy(bytes.data(), data + command.offset, bytes.size(), cudaMemcpyDeviceToHost),
                cudaSuccess);
      testing::WriteAll(testing::kExporterOut, bytes.data(), bytes.size());
    }
  }
}

/// Skips its tests by name where no GPU works, or its driver shares no memory between processes.
class CudaDeviceRegions : public ::testing::Test {
 protected:
  static constexpr uint64_t kBytes = 64 << 20, kMany = 16 << 20;
  static constexpr size_t kRim = 4096;
  void SetUp() override {
    if (CudaDeviceCount() == 0) GTEST_SKIP() << "no CUDA device";
    auto opened = OpenCudaDevice(0);
    ASSERT_TRUE(opened) << opened.error().ToString();
    device = *std::move(opened);
    exporter = std::make_unique<Exporter>();
    handle = exporter->Allocate(kBytes);
    if (handle.empty()) GTEST_SKIP() << "no CUDA IPC here";
  }
  /// The engine takes the device.
  std::unique_ptr<Engine> MakeEngine() {
    EngineOptions options{
        .lanes = 3, .block_bytes = 64 << 10, .device_bytes = kGiB, .pinned_bytes = 256 << 20};
    options.regions = testing::DeviceOn();
    return Engine::Make(std::move(device), options).value();
  }
  RegionRequest All() const { return {.bytes = kBytes, .writable = true, .handle = handle}; }
  /// A job of `problem`, whose operands lie at multiples of kMany, and, with `result_too`, its result behind.
  Result<std::vector<std::byte>> Run(Engine& engine, const std::string& id, const Problem& problem,
                                     unsigned mask, bool result_too) {
    JobOptions options;
    std::vector<bool> there;
    for (size_t i = 0; i < problem.operands.size(); ++i) {
      there.push_back((mask >> i & 1) != 0);
      options.regions.push_back(there[i] ? Part(engine, id, i * kMany) : RegionPart());
    }
    if (result_too) options.result_region = Part(engine, id, 2 * kMany);
    const auto job = testing::Open(engine, problem.make(), options);
    if (!job) return Fail(job.error());
    options = {};
    auto output = testing::Finish(*job, problem, there);
    if (!output) return Fail(output.error());
    EXPECT_EQ((*job)->timing().region_bytes_in + (*job)->timing().region_bytes_out, 0U);
    return std::vector<std::byte>(output->begin(), output->end());
  }
  void ExpectGood(Engine& engine) {
    const Problem problem = testing::RmseProblem(DType::kF32, {300'000}, {}, 4);
    const auto good = testing::RunJob(engine, problem, {testing::Ascending(problem, 500'000)});
    ASSERT_TRUE(good) << good.error().ToString();
    EXPECT_EQ(*good, problem.expected);
    EXPECT_FALSE(engine.stats().device_failed);
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Exporter> exporter;
  std::string handle;
};

TEST_F(CudaDeviceRegions, JobsHaveTheBitsOfTheCpuAndWriteNothingElse) {
  const auto engine = MakeEngine();
  const auto region = testing::Register(engine->regions(), All());
  ASSERT_TRUE(region) << region.error().ToString();
  for (const Problem& problem : testing::RegionProblems()) {
    for (size_t i = 0; i < problem.operands.size(); ++i)
      exporter->Write(i * kMany, problem.operands[i].data(), problem.operands[i].size());
    const size_t size = problem.expected.size();
    for (unsigned mask = 0; mask < 1U << problem.operands.size(); ++mask)
      for (const bool result_too : {false, true}) {
        SCOPED_TRACE(std::string(problem.make()->name()) + std::to_string(mask) + std::to_string(result_too));
        const std::vector<std::byte> blank(size + kRim, std::byte{0xa7});
        exporter->Write(2 * kMany, blank.data(), blank.size());
        const auto output = Run(*engine, region->id, problem, mask, result_too);
        ASSERT_TRUE(output) << output.error().ToString();
        const auto after = exporter->Read(2 * kMany, size + kRim);
        const auto& result = result_too ? after : *output;
        EXPECT_EQ(std::memcmp(result.data(), problem.expected.data(), size), 0);
        EXPECT_TRUE(std::equal(after.begin() + static_cast<ptrdiff_t>(size), after.end(), blank.begin()));
      }
  }
  EXPECT_TRUE(engine->regions().Unregister(region->id, "anonymous").ok());
  EXPECT_TRUE(testing::BecomesIdle(*engine));
  EXPECT_TRUE(testing::NoRegionsLeft(*engine));
}

TEST_F(CudaDeviceRegions, OpenedTwiceItStaysUntilBothAreClosed) {
  const auto engine = MakeEngine();
  const Problem problem = testing::RmseProblem(DType::kF32, {300, 1000}, {0}, 3);
  for (size_t i = 0; i < 2; ++i)
    exporter->Write(i * kMany, problem.operands[i].data(), problem.operands[i].size());
  const auto first = testing::Register(engine->regions(), All());
  const auto second = testing::Register(engine->regions(), All());
  ASSERT_TRUE(first && second);
  std::promise<Status> closed;
  engine->regions().Unregister(first->id, "anonymous",
                               [&](Status status) { closed.set_value(std::move(status)); });
  EXPECT_TRUE(closed.get_future().get().ok());
  const auto output = Run(*engine, second->id, problem, 3, false);
  ASSERT_TRUE(output) << output.error().ToString();
  EXPECT_EQ(std::memcmp(output->data(), problem.expected.data(), problem.expected.size()), 0);
}

TEST_F(CudaDeviceRegions, WhatIsSaidOfItIsCheckedByTheDriver) {
  const auto engine = MakeEngine();
  RegionRequest request = All();
  request.bytes = kBytes + (4 << 20);  // more than a driver rounds up to
  auto region = testing::Register(engine->regions(), request);
  ASSERT_FALSE(region);
  EXPECT_EQ(region.error().detail()->field, "device_memory.bytes") << region.error().ToString();
  request = All();
  request.offset = ~uint64_t{255};
  region = testing::Register(engine->regions(), request);
  ASSERT_FALSE(region);
  EXPECT_EQ(region.error().detail()->field, "device_memory.bytes") << region.error().ToString();
  ExpectGood(*engine);
}

TEST_F(CudaDeviceRegions, HandlesOfNothingAndOfThisProcessHarmNobody) {
  void* own = nullptr;
  ASSERT_EQ(cudaMalloc(&own, 4 << 20), cudaSuccess);
  cudaIpcMemHandle_t mine;
  ASSERT_EQ(cudaIpcGetMemHandle(&mine, own), cudaSuccess);
  const auto engine = MakeEngine();
  std::vector<std::string> handles{std::string(64, '\0'), std::string(64, 'x'),
                                   std::string(mine.reserved, 64)};
  for (size_t i = 0; i < 64; i += 7) {
    handles.push_back(handle);
    handles.back()[i] = static_cast<char>(handles.back()[i] ^ 0x5a);
  }
  for (const std::string& wrong : handles) {
    RegionRequest request{.bytes = 4096, .writable = true, .handle = wrong};
    const auto region = testing::Register(engine->regions(), request);
    if (region) continue;  // a byte that the driver does not look at
    const std::string_view reason = region.error().reason();
    EXPECT_TRUE(reason == "BAD_VALUE" || reason == "REGION_UNPINNABLE") << region.error().ToString();
    EXPECT_FALSE(engine->stats().device_failed) << region.error().ToString();
  }
  ExpectGood(*engine);
  EXPECT_EQ(cudaFree(own), cudaSuccess);
}

TEST_F(CudaDeviceRegions, ADeadExporterHarmsNobody) {
  const auto engine = MakeEngine();
  const Problem problem = testing::RmseProblem(DType::kF32, {300, 1000}, {0}, 3);
  const auto region = testing::Register(engine->regions(), All());
  ASSERT_TRUE(region) << region.error().ToString();
  exporter->Kill();
  (void)Run(*engine, region->id, problem, 3, true).has_value();  // of whatever bytes are there
  ExpectGood(*engine);
  EXPECT_TRUE(engine->regions().Unregister(region->id, "anonymous").ok());
  EXPECT_TRUE(testing::NoRegionsLeft(*engine));
  const auto late = testing::Register(engine->regions(), All());
  EXPECT_FALSE(late) << "nobody exports it any more";
  ExpectGood(*engine);
}

}  // namespace
}  // namespace tilewire::engine
