// The CPU device and the decorated devices through the seam.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "server/base/limits.h"
#include "server/engine/device/cpu/device.h"
#include "server/engine/device/cuda/device.h"
#include "server/engine/device/memory_pool.h"
#include "tests/devices/decorators.h"
#include "tests/unit/lane_checks.h"

namespace tilewire::engine {
namespace {

using testing::CheckDestructorDrains;
using testing::CheckExactlyOnce;
using testing::CheckGaussian;
using testing::CheckOrder;
using testing::CheckRmse;
using testing::CheckRoundTrip;
using testing::CheckTranspose;
using testing::Latch;

/// Devices that must behave the same, whatever wraps them.
class SeamTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string kind = GetParam();
    device_ = OpenCpuDevice(kind == "single" ? 1 : 4);
    if (kind == "slow" || kind == "stacked") {
      device_ = MakeSlow(std::move(device_), {.jitter = std::chrono::microseconds(50), .seed = 3});
    }
    if (kind == "faulty" || kind == "stacked")
      device_ = MakeFaulty(std::move(device_), std::make_shared<Faults>());
    if (kind == "short" || kind == "stacked") {
      device_ = MakeOutOfMemory(std::move(device_), std::make_shared<Shortage>());
    }
  }
  std::unique_ptr<Device> device_;
};

TEST_P(SeamTest, BytesGoThereAndBack) {
  CheckRoundTrip(*device_);
}
TEST_P(SeamTest, SubmissionsKeepTheirOrder) {
  CheckOrder(*device_);
}
TEST_P(SeamTest, EachCallbackComesOnce) {
  CheckExactlyOnce(*device_);
}
TEST_P(SeamTest, DestructorDrains) {
  CheckDestructorDrains(*device_);
}
TEST_P(SeamTest, RmseHasTheBitsOfTheHostFunctions) {
  CheckRmse(*device_, {1}, {});
  CheckRmse(*device_, {1031, 1030}, {});
  CheckRmse(*device_, {300, 4, 257}, {-1});
  CheckRmse(*device_, {5000, 33}, {0});
}
TEST_P(SeamTest, TransposeMovesEveryElement) {
  CheckTranspose(*device_, 1, 1, 1);
  CheckTranspose(*device_, 37, 129, 65);
}

TEST_P(SeamTest, GaussianHasTheBitsOfTheHostFunctions) {
  CheckGaussian(*device_, DType::kF32, {1});
  CheckGaussian(*device_, DType::kF32, {1'300'003});
  CheckGaussian(*device_, DType::kF64, {70'001, 3});
}
TEST_P(SeamTest, HostCodeHasNoKernelsToDescribe) {
  const auto plan = gaussian::Plan::Make(testing::Spec(DType::kF32, {100}), 0, 1);
  ASSERT_TRUE(plan);
  const testing::Launches nowhere(gaussian::MakeProblem(*plan), {nullptr}, nullptr);
  const auto kernels = device_->DescribeWork(nowhere[{0}]);
  ASSERT_TRUE(kernels) << kernels.error().ToString();
  EXPECT_TRUE(kernels->empty());
  const auto ladder = device_->DescribeLadder();
  ASSERT_TRUE(ladder) << ladder.error().ToString();
  EXPECT_TRUE(ladder->empty());
}

INSTANTIATE_TEST_SUITE_P(Devices, SeamTest,
                         ::testing::Values("single", "plain", "slow", "faulty", "short", "stacked"),
                         [](const auto& test) { return std::string(test.param); });

TEST(CpuDevice, SaysWhatItIs) {
  const auto device = OpenCpuDevice(3);
  EXPECT_EQ(device->facts().id, "cpu");
  EXPECT_FALSE(device->facts().name.empty());
  EXPECT_EQ(device->facts().processors, 3);
  EXPECT_TRUE(device->facts().host_memory);
  EXPECT_GT(device->facts().memory_bytes, 0);
  EXPECT_TRUE(device->health().ok());
  EXPECT_GE(OpenCpuDevice(0)->facts().processors, 1);
}

TEST(CpuDevice, BudgetBoundsMemoryAndFreedMemoryIsReused) {
  const auto device = OpenCpuDevice(1);
  device->SetDeviceBudget(8 * kMiB);
  EXPECT_LE(device->FreeBytes(), 8 * kMiB);
  auto first = device->AllocateDevice(6 * kMiB);
  ASSERT_TRUE(first);
  EXPECT_LE(device->FreeBytes(), 2 * kMiB);
  auto second = device->AllocateDevice(4 * kMiB);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kResourceExhausted);
  EXPECT_EQ(second.error().reason(), "BUSY");
  const std::byte* where = first->data();
  first->Reset();
  EXPECT_EQ(device->cached_bytes(), 6 * kMiB);
  auto again = device->AllocateDevice(6 * kMiB);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->data(), where);
  EXPECT_EQ(device->cached_bytes(), 0);
}

TEST(CpuDevice, ImpossibleSizesAreBusyNotACrash) {
  const auto device = OpenCpuDevice(1);
  for (size_t bytes : {size_t{1} << 60, size_t{1} << 62, ~size_t{0}}) {
    EXPECT_EQ(device->AllocateDevice(bytes).error().reason(), "BUSY") << bytes;
    EXPECT_EQ(device->AllocatePinned(bytes).error().reason(), "BUSY") << bytes;
  }
}

TEST(CpuDevice, ManyLanesShareTheWorkers) {
  const auto device = OpenCpuDevice(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) threads.emplace_back([&] { CheckRmse(*device, {700, 801}, {}); });
  for (auto& thread : threads) thread.join();
}

TEST(CpuDevice, HelpersKeepTheOrderAndCallBackOneAtATime) {
  constexpr int kSubmissions = 2000;
  const auto device = OpenCpuDevice(2);
  Memory memory = device->AllocateDevice(64).value();
  std::vector<int> order;  // unguarded on purpose: callbacks must not overlap
  Latch done(kSubmissions);
  std::atomic<bool> stop{false};
  std::vector<std::thread> helpers;
  const auto lane = testing::MakeLane(*device);
  for (int i = 0; i < 3; ++i)
    helpers.emplace_back([&] {
      while (!stop) lane->Help(std::chrono::microseconds(50));
    });
  const std::byte byte{7};
  for (int i = 0; i < kSubmissions; ++i) {
    lane->CopyIn(memory.data(), &byte, 1, [&, i](const Completion& completion) {
      order.push_back(i);
      done.Arrive(completion.status);
    });
  }
  EXPECT_TRUE(done.Wait().ok());
  stop = true;
  for (auto& helper : helpers) helper.join();
  ASSERT_EQ(order.size(), static_cast<size_t>(kSubmissions));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(CpuDevice, HelpDoesTheWorkOnTheCallersThread) {
  const auto device = OpenCpuDevice(2);
  Memory memory = device->AllocateDevice(64).value();
  const auto lane = testing::MakeLane(*device);
  const std::byte byte{7};
  bool helped = false;
  for (int i = 0; i < 1000 && !helped; ++i) {  // the lane's own thread may be quicker now and then
    Latch done(1);
    std::thread::id where;
    lane->CopyIn(memory.data(), &byte, 1, [&](const Completion& completion) {
      where = std::this_thread::get_id();
      done.Arrive(completion.status);
    });
    lane->Help(std::chrono::microseconds(200));
    EXPECT_TRUE(done.Wait().ok());
    helped = where == std::this_thread::get_id();
  }
  EXPECT_TRUE(helped);
}

#ifndef TILEWIRE_HAVE_CUDA
TEST(CudaDevice, BuildsWithoutCudaSaySo) {
  EXPECT_EQ(CudaDeviceCount(), 0);
  const auto device = OpenCudaDevice(0);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code(), Code::kUnavailable);
  EXPECT_NE(device.error().message().find("without CUDA"), std::string::npos);
}
#endif

}  // namespace
}  // namespace tilewire::engine
