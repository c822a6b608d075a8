// Devices that misbehave on purpose do so as told, and only so.
#include <gtest/gtest.h>

#include "server/engine/device/cpu/device.h"
#include "tests/devices/decorators.h"
#include "tests/unit/lane_checks.h"

namespace tilewire::engine {
namespace {

using std::chrono::microseconds;
using testing::Latch;

/// Statuses of `count` one-byte submissions of a kind, in completion order.
std::vector<Status> Submit(Device& device, Lane& lane, Submitted kind, int count) {
  Memory host = testing::Pinned(device, 16), there = testing::Device(device, 16);
  std::vector<Status> statuses;
  Latch latch(count);
  auto done = [&](const Completion& completion) {
    statuses.push_back(completion.status);
    latch.Arrive({});
  };
  for (int i = 0; i < count; ++i) {
    if (kind == Submitted::kCopyIn) {
      lane.CopyIn(there.data(), host.data(), 1, done);
    } else {
      lane.CopyOut(host.data(), there.data(), 1, done);
    }
  }
  EXPECT_TRUE(latch.Wait().ok());
  return statuses;
}

TEST(SlowDevice, DelaysEachKindAsTold) {
  const auto device =
      MakeSlow(OpenCpuDevice(1), {.copy_in = microseconds(20000), .copy_out = microseconds(0)});
  const auto lane = testing::MakeLane(*device);
  TimePoint begin = Clock::now();
  Submit(*device, *lane, Submitted::kCopyIn, 3);
  EXPECT_GE(Clock::now() - begin, microseconds(60000));
  // Not delayed: a busy machine may take its time over some of them, not over all.
  auto quickest = Clock::duration::max();
  for (int i = 0; i < 100 && quickest >= microseconds(60000); ++i) {
    begin = Clock::now();
    Submit(*device, *lane, Submitted::kCopyOut, 3);
    quickest = std::min(quickest, Clock::now() - begin);
  }
  EXPECT_LT(quickest, microseconds(60000));
}

TEST(SlowDevice, BecomesSlowAndQuickAgainAsTold) {
  const auto slowness = std::make_shared<Slowness>();
  const auto device = MakeSlow(OpenCpuDevice(1), slowness);
  const auto lane = testing::MakeLane(*device);
  EXPECT_EQ(slowness->options().copy_in, microseconds(0));
  Submit(*device, *lane, Submitted::kCopyIn, 1);
  slowness->Set({.copy_in = microseconds(20000)});
  const TimePoint begin = Clock::now();
  Submit(*device, *lane, Submitted::kCopyIn, 3);
  EXPECT_GE(Clock::now() - begin, microseconds(60000));
  slowness->Set({.copy_in = std::chrono::hours(1)});
  slowness->Set({});
  Submit(*device, *lane, Submitted::kCopyIn, 3);  // or the test takes hours
}

TEST(SlowDevice, CopiesHappenLate) {
  const auto device = MakeSlow(OpenCpuDevice(1), {.copy_in = microseconds(50000)});
  const auto lane = testing::MakeLane(*device);
  Memory host = testing::Pinned(*device, 1), there = testing::Device(*device, 1);
  there.data()[0] = std::byte{1};
  host.data()[0] = std::byte{2};
  Latch latch(1);
  const TimePoint begin = Clock::now();
  lane->CopyIn(there.data(), host.data(), 1, [&](const Completion& completion) {
    EXPECT_GE(completion.end - completion.begin, microseconds(50000));
    EXPECT_GE(completion.begin, begin);
    latch.Arrive(completion.status);
  });
  ASSERT_TRUE(latch.Wait().ok());
  EXPECT_EQ(there.data()[0], std::byte{2});
}

TEST(SlowDevice, JitterFollowsFromSeedLaneAndSubmission) {
  const SlowOptions options{.jitter = microseconds(1000), .seed = 5},
      other{.jitter = microseconds(1000), .seed = 6};
  int same_seed = 0, same_lane = 0;
  int64_t sum = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const microseconds jitter = SlowJitter(options, 0, i);
    EXPECT_GE(jitter, microseconds(0));
    EXPECT_LE(jitter, options.jitter);
    EXPECT_EQ(jitter, SlowJitter(options, 0, i));
    same_seed += jitter == SlowJitter(other, 0, i);
    same_lane += jitter == SlowJitter(options, 1, i);
    sum += jitter.count();
  }
  EXPECT_LT(same_seed, 20);
  EXPECT_LT(same_lane, 20);
  EXPECT_NEAR(static_cast<double>(sum) / 1000, 500, 50);
  EXPECT_EQ(SlowJitter({}, 3, 4), microseconds(0));
}

TEST(SlowDevice, SubmissionsGetTheirJitter) {
  const SlowOptions options{.jitter = microseconds(4000), .seed = 9};
  const auto device = MakeSlow(OpenCpuDevice(1), options);
  Memory host = testing::Pinned(*device, 1), there = testing::Device(*device, 1);
  for (uint64_t number : {0, 1}) {
    const auto lane = testing::MakeLane(*device);
    Latch latch(8);
    for (uint64_t i = 0; i < 8; ++i) {
      lane->CopyIn(there.data(), host.data(), 1, [&, number, i](const Completion& completion) {
        EXPECT_GE(completion.end - completion.begin, SlowJitter(options, number, i));
        latch.Arrive({});
      });
    }
    ASSERT_TRUE(latch.Wait().ok());
  }
}

TEST(FaultyDevice, ExactlyTheNthFailsInItsPlace) {
  auto faults = std::make_shared<Faults>();
  const auto device = MakeFaulty(OpenCpuDevice(1), faults);
  const auto lane = testing::MakeLane(*device);
  Submit(*device, *lane, Submitted::kCopyIn, 2);
  faults->FailNth(Submitted::kCopyIn, 3, Status(Code::kInternal, "INTERNAL_ERROR", "as told"));
  const auto outs = Submit(*device, *lane, Submitted::kCopyOut, 5);
  for (const Status& status : outs) EXPECT_TRUE(status.ok()) << "other kinds are not hit";
  const auto ins = Submit(*device, *lane, Submitted::kCopyIn, 5);
  for (size_t i = 0; i < ins.size(); ++i) EXPECT_EQ(ins[i].ok(), i != 2) << i;
  EXPECT_EQ(ins[2].message(), "as told");
  EXPECT_TRUE(device->health().ok());
  EXPECT_EQ(faults->count(Submitted::kCopyIn), 7);
  EXPECT_EQ(faults->count(Submitted::kCopyOut), 5);
}

TEST(FaultyDevice, AFailedCopyMovesNothing) {
  auto faults = std::make_shared<Faults>();
  const auto device = MakeFaulty(OpenCpuDevice(1), faults);
  const auto lane = testing::MakeLane(*device);
  Memory host = testing::Pinned(*device, 1), there = testing::Device(*device, 1);
  there.data()[0] = std::byte{1};
  host.data()[0] = std::byte{2};
  faults->FailNth(Submitted::kCopyIn, 1, Status(Code::kInternal, "INTERNAL_ERROR", "as told"));
  Latch latch(1);
  lane->CopyIn(there.data(), host.data(), 1, latch.Callback());
  EXPECT_FALSE(latch.Wait().ok());
  EXPECT_EQ(there.data()[0], std::byte{1});
}

TEST(FaultyDevice, ClearForgetsWhatHasNotHappened) {
  auto faults = std::make_shared<Faults>();
  const auto device = MakeFaulty(OpenCpuDevice(1), faults);
  const auto lane = testing::MakeLane(*device);
  faults->FailNth(Submitted::kCopyIn, 1, Status(Code::kInternal, "INTERNAL_ERROR", "as told"));
  faults->Clear();
  EXPECT_TRUE(Submit(*device, *lane, Submitted::kCopyIn, 1)[0].ok());
}

TEST(FaultyDevice, AFailedDeviceStaysFailed) {
  auto faults = std::make_shared<Faults>();
  const auto device = MakeFaulty(OpenCpuDevice(2), faults);
  const auto lane = testing::MakeLane(*device), other = testing::MakeLane(*device);
  Memory host = testing::Pinned(*device, 16), there = testing::Device(*device, 16);
  faults->FailNth(Submitted::kLaunch, 1, Status(Code::kInternal, "DEVICE_FAILED", "gone"), true);
  auto plan = rmse::Plan::Make(testing::Spec(DType::kF32, {4}), {}, rmse::Output::kRmse);
  ASSERT_TRUE(plan);
  Latch launch(1), after(2);
  const testing::Launches launches(rmse::MakeProblem(*plan), {there.data(), there.data()}, host.data(),
                                   host.data() + 8);
  const Work work = launches[{0}];
  lane->Launch(work, launch.Callback());
  EXPECT_EQ(launch.Wait().reason(), "DEVICE_FAILED");
  EXPECT_EQ(device->health().message(), "gone");
  lane->CopyIn(there.data(), host.data(), 1, after.Callback());
  other->CopyIn(there.data() + 8, host.data() + 8, 1, after.Callback());
  EXPECT_EQ(after.Wait().reason(), "DEVICE_FAILED");
  EXPECT_EQ(device->AllocateDevice(1).error().reason(), "DEVICE_FAILED");
  EXPECT_EQ(device->AllocatePinned(1).error().reason(), "DEVICE_FAILED");
  EXPECT_EQ(device->MakeLane(LanePriority::kBulk).error().reason(), "DEVICE_FAILED");
  EXPECT_EQ(device->DescribeWork(work).error().reason(), "DEVICE_FAILED");
  EXPECT_EQ(device->DescribeLadder().error().reason(), "DEVICE_FAILED");
  faults->Clear();
  EXPECT_FALSE(device->health().ok());
}

TEST(OutOfMemoryDevice, NthAllocationsAndTheCapAreBusy) {
  auto shortage = std::make_shared<Shortage>();
  const auto device = MakeOutOfMemory(OpenCpuDevice(1), shortage);
  shortage->FailNthDevice(2);
  EXPECT_TRUE(device->AllocateDevice(100));
  EXPECT_EQ(device->AllocateDevice(100).error().reason(), "BUSY");
  EXPECT_TRUE(device->AllocateDevice(100));
  shortage->FailNthPinned(1);
  EXPECT_EQ(device->AllocatePinned(100).error().reason(), "BUSY");
  EXPECT_TRUE(device->AllocatePinned(100));
  EXPECT_EQ(shortage->refused(), 2);

  shortage->CapDevice(1000);
  {
    auto most = device->AllocateDevice(900);
    ASSERT_TRUE(most);
    EXPECT_EQ(shortage->leased_device_bytes(), 900);
    EXPECT_EQ(device->AllocateDevice(101).error().reason(), "BUSY");
    EXPECT_TRUE(device->AllocateDevice(100));
  }
  EXPECT_EQ(shortage->leased_device_bytes(), 0);
  EXPECT_TRUE(device->AllocateDevice(1000));
}

}  // namespace
}  // namespace tilewire::engine
