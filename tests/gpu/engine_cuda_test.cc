// The CUDA device through the seam: the promises of every device, the bits of the CPU, and its own failures.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "server/base/limits.h"
#include "server/engine/device/cpu/device.h"
#include "server/engine/device/cuda/device.h"
#include "server/engine/device/cuda/error.h"
#include "server/engine/device/memory_pool.h"
#include "tests/devices/decorators.h"
#include "tests/unit/lane_checks.h"

namespace tilewire::engine {
namespace {

using testing::Latch;

/// Skips its tests by name where no GPU works.
class NeedsGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (CudaDeviceCount() == 0) GTEST_SKIP() << "no CUDA device";
  }
};
class CudaErrors : public NeedsGpu {};
class CudaErrorsDeathTest : public NeedsGpu {};
class CudaMemory : public NeedsGpu {};
class CudaSeam : public NeedsGpu {};

std::unique_ptr<Device> Open() {
  auto device = OpenCudaDevice(0);
  EXPECT_TRUE(device) << device.error().ToString();
  return device ? *std::move(device) : nullptr;
}

TEST_F(CudaSeam, SaysWhatItIs) {
  ASSERT_GE(CudaDeviceCount(), 1);
  const auto device = Open();
  const DeviceFacts& facts = device->facts();
  EXPECT_EQ(facts.id, "cuda:0");
  EXPECT_FALSE(facts.name.empty());
  EXPECT_GT(facts.memory_bytes, kGiB);
  EXPECT_GT(facts.processors, 0);
  EXPECT_NE(facts.compute_capability.find('.'), std::string::npos);
  EXPECT_NE(facts.driver_version.find('.'), std::string::npos);
  EXPECT_FALSE(facts.host_memory);
  EXPECT_GT(device->FreeBytes(), 0);
  EXPECT_LE(device->FreeBytes(), facts.memory_bytes);
  EXPECT_TRUE(device->health().ok());
}

TEST_F(CudaSeam, ADeviceThatIsNotThereSaysWhy) {
  for (int ordinal : {-1, CudaDeviceCount(), 1000}) {
    const auto device = OpenCudaDevice(ordinal);
    ASSERT_FALSE(device) << ordinal;
    EXPECT_EQ(device.error().code(), Code::kUnavailable);
    EXPECT_NE(device.error().message().find("CUDA devices"), std::string::npos) << device.error().message();
  }
  EXPECT_TRUE(Open()) << "the failed attempts left nothing behind";
}

TEST_F(CudaSeam, BytesGoThereAndBack) {
  testing::CheckRoundTrip(*Open());
}
TEST_F(CudaSeam, SubmissionsKeepTheirOrder) {
  testing::CheckOrder(*Open());
}
TEST_F(CudaSeam, EachCallbackComesOnce) {
  testing::CheckExactlyOnce(*Open());
}
TEST_F(CudaSeam, DestructorDrains) {
  testing::CheckDestructorDrains(*Open());
}

TEST_F(CudaSeam, KernelsHaveTheBitsOfTheCpu) {
  const auto device = Open();
  testing::CheckRmse(*device, {1}, {});
  testing::CheckRmse(*device, {12289}, {});
  testing::CheckRmse(*device, {2051, 2050}, {});
  testing::CheckRmse(*device, {300, 4, 257}, {-1});
  testing::CheckRmse(*device, {5000, 33}, {0});
  testing::CheckRmse(*device, {70, 80, 90}, {1});
  testing::CheckTranspose(*device, 1, 1, 1);
  testing::CheckTranspose(*device, 37, 129, 65);
  testing::CheckTranspose(*device, 250, 300, 64);
  for (const DType dtype : {DType::kF32, DType::kF64})
    for (const int64_t elements : {1, 1'300'003}) testing::CheckGaussian(*device, dtype, {elements});
}

TEST_F(CudaSeam, LanesWorkSideBySide) {
  const auto device = Open();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { testing::CheckRmse(*device, {1700, 1801}, {}); });
  for (auto& thread : threads) thread.join();
}

TEST_F(CudaSeam, DecoratorsKeepThePromises) {
  auto faults = std::make_shared<Faults>();
  auto device = MakeFaulty(MakeSlow(Open(), {.jitter = std::chrono::microseconds(30)}), faults);
  testing::CheckOrder(*device);
  testing::CheckRmse(*device, {1031, 1030}, {});
  for (Submitted kind : {Submitted::kCopyIn, Submitted::kLaunch}) {
    faults->FailNth(kind, 1, Status(Code::kInternal, "INTERNAL_ERROR", "as told"));
    Memory host = testing::Pinned(*device, 16), there = testing::Device(*device, 16);
    const auto lane = testing::MakeLane(*device);
    auto plan = rmse::Plan::Make(testing::Spec(DType::kF32, {1}), {}, rmse::Output::kRmse);
    ASSERT_TRUE(plan);
    Latch latch(1);
    if (kind == Submitted::kCopyIn) {
      lane->CopyIn(there.data(), host.data(), 16, latch.Callback());
    } else {
      const testing::Launches launches(rmse::MakeProblem(*plan), {there.data(), there.data()}, there.data(),
                                       there.data() + 8);
      lane->Launch(launches[{0}], latch.Callback());
    }
    EXPECT_EQ(latch.Wait().message(), "as told");
  }
}

TEST_F(CudaMemory, FreedPiecesAreReusedAndTheBudgetHolds) {
  const auto device = Open();
  device->SetDeviceBudget(64 * kMiB);
  EXPECT_LE(device->FreeBytes(), 64 * kMiB);
  auto first = device->AllocateDevice(48 * kMiB);
  ASSERT_TRUE(first);
  EXPECT_EQ(device->AllocateDevice(32 * kMiB).error().reason(), "BUSY");
  const std::byte* where = first->data();
  first->Reset();
  EXPECT_EQ(device->cached_bytes(), 48 * kMiB);
  first = device->AllocateDevice(48 * kMiB - 5);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->data(), where);
  first->Reset();
  EXPECT_TRUE(device->AllocateDevice(64 * kMiB)) << "cached pieces make room";
}

TEST_F(CudaMemory, MoreThanTheDeviceHasIsBusyAndHarmless) {
  const auto device = Open();
  const auto bytes = static_cast<size_t>(device->facts().memory_bytes);
  for (size_t size : {bytes, 2 * bytes, size_t{1} << 60}) {
    const auto memory = device->AllocateDevice(size);
    ASSERT_FALSE(memory);
    EXPECT_EQ(memory.error().code(), Code::kResourceExhausted);
    EXPECT_EQ(memory.error().reason(), "BUSY");
  }
  EXPECT_TRUE(device->health().ok());
  testing::CheckRmse(*device, {5000}, {});  // no error is left for the next launch to find
}

TEST_F(CudaMemory, PinnedPiecesAreReusedFromEveryThread) {
  const auto device = Open();
  std::byte* where = nullptr;
  std::thread([&] { where = testing::Pinned(*device, 4 * kMiB).data(); }).join();
  const Memory again = testing::Pinned(*device, 4 * kMiB);
  EXPECT_EQ(again.data(), where);
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, again.data()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
}

TEST_F(CudaErrors, Classes) {
  EXPECT_EQ(Classify(cudaSuccess), CudaErrorClass::kOk);
  EXPECT_EQ(Classify(cudaErrorMemoryAllocation), CudaErrorClass::kOutOfMemory);
  for (cudaError_t error :
       {cudaErrorInvalidValue, cudaErrorInvalidConfiguration, cudaErrorLaunchOutOfResources}) {
    EXPECT_EQ(Classify(error), CudaErrorClass::kCall) << error;
  }
  for (cudaError_t error :
       {cudaErrorIllegalAddress, cudaErrorECCUncorrectable, cudaErrorLaunchFailure, cudaErrorAssert,
        cudaErrorHardwareStackError, cudaErrorMisalignedAddress, cudaErrorNoDevice}) {
    EXPECT_EQ(Classify(error), CudaErrorClass::kFatal) << error;
  }
}

TEST_F(CudaErrors, AreReportedOnceWithTheirPlace) {
  void* data = nullptr;
  const Status status = TILEWIRE_CUDA_STATUS(cudaHostAlloc(&data, 16, 0xffff));
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_EQ(status.reason(), "INTERNAL_ERROR");
  for (const char* part : {"cudaHostAlloc", "cudaErrorInvalidValue", "engine_cuda_test.cc:"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
  EXPECT_EQ(status.message().find('/'), std::string::npos) << "no path of the machine that built it";
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "cleared";
}

TEST_F(CudaErrors, AWrongCopyFailsAloneAndAsynchronously) {
  const auto device = Open();
  const auto lane = testing::MakeLane(*device);
  Memory host = testing::Pinned(*device, 4096), there = testing::Device(*device, 4096);
  std::thread::id called_on;
  Latch bad(1), good(1);
  // More than the allocation has: refused when submitted.
  lane->CopyIn(there.data(), host.data(), size_t{1} << 50, [&](const Completion& completion) {
    called_on = std::this_thread::get_id();
    bad.Arrive(completion.status);
  });
  const Status status = bad.Wait();
  EXPECT_EQ(status.reason(), "INTERNAL_ERROR") << status.ToString();
  EXPECT_NE(called_on, std::this_thread::get_id());
  EXPECT_TRUE(device->health().ok());
  lane->CopyIn(there.data(), host.data(), 4096, good.Callback());
  EXPECT_TRUE(good.Wait().ok());
}

/// Launches on an address that is nobody's, and says by its exit code what was wrong with the answer; 0:
/// nothing.
[[noreturn]] void BreakTheContext() {
  auto opened = OpenCudaDevice(0);
  if (!opened) std::_Exit(10);
  Device& device = **opened;
  auto plan = rmse::Plan::Make(testing::Spec(DType::kF32, {100000}), {}, rmse::Output::kRmse);
  if (!plan) std::_Exit(11);
  Memory sums = testing::Device(device, static_cast<size_t>(plan->scratch_bytes()));
  Memory host = testing::Pinned(device, 4096);
  const auto lane = testing::MakeLane(device), other = testing::MakeLane(device);
  auto* nowhere = reinterpret_cast<std::byte*>(uintptr_t{1} << 46);
  Latch launch(1), after(4);
  const testing::Launches launches(rmse::MakeProblem(*plan), {nowhere, nowhere}, host.data(), sums.data());
  lane->Launch(launches[{0}], launch.Callback());
  const Status status = launch.Wait();
  std::cerr << status.ToString() << std::endl;
  if (status.reason() != "DEVICE_FAILED") std::_Exit(12);
  if (device.health().reason() != "DEVICE_FAILED") std::_Exit(13);
  for (Lane* each : {lane.get(), other.get()}) {
    each->CopyIn(sums.data(), host.data(), 8, after.Callback());
    each->CopyOut(host.data(), sums.data(), 8, after.Callback());
  }
  if (after.Wait().reason() != "DEVICE_FAILED") std::_Exit(14);
  const auto memory = device.AllocateDevice(4096);
  if (memory || memory.error().reason() != "DEVICE_FAILED") std::_Exit(15);
  if (device.MakeLane(LanePriority::kBulk)) std::_Exit(16);
  std::_Exit(0);
}

TEST_F(CudaErrorsDeathTest, AnIllegalAddressFailsTheDeviceForGood) {
  // Re-executed: a forked child cannot use CUDA, and this process keeps its context.
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(BreakTheContext(), ::testing::ExitedWithCode(0), "cudaErrorIllegalAddress");
  EXPECT_TRUE(Open()->health().ok());
}

/// Tears everything down after the failure instead of exiting: destructors must neither hang nor throw.
void BreakTheContextAndCleanUp() {
  auto device = *OpenCudaDevice(0);
  auto plan = *rmse::Plan::Make(testing::Spec(DType::kF32, {100000}), {}, rmse::Output::kRmse);
  Memory sums = testing::Device(*device, static_cast<size_t>(plan.scratch_bytes()));
  auto* nowhere = reinterpret_cast<std::byte*>(uintptr_t{1} << 46);
  const testing::Launches launches(rmse::MakeProblem(plan), {nowhere, nowhere}, sums.data(), sums.data());
  auto lane = testing::MakeLane(*device);
  for (int i = 0; i < 10; ++i) lane->Launch(launches[{0}], [](const Completion&) {});
}

TEST_F(CudaErrorsDeathTest, AFailedDeviceCanBeTakenDown) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        BreakTheContextAndCleanUp();
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tilewire::engine
