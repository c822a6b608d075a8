// When work ran on the device, as its completions tell: the spans of a job are these.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "server/base/limits.h"
#include "server/engine/device/cuda/device.h"
#include "tests/unit/lane_checks.h"

namespace tilewire::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::Latch;

/// Skips its tests by name where no GPU works.
class CudaTiming : public ::testing::Test {
 protected:
  void SetUp() override {
    if (CudaDeviceCount() == 0) GTEST_SKIP() << "no CUDA device";
    auto device = OpenCudaDevice(0);
    ASSERT_TRUE(device) << device.error().ToString();
    device_ = *std::move(device);
  }
  std::unique_ptr<engine::Device> device_;
};

/// When a submission was made and its completion noticed, and where the lane puts it in between.
struct Seen {
  TimePoint submitted, noticed;
  Completion completion;
};

/// Copies `bytes` bytes `count` times on `lane` and waits. Callbacks come in order, one at a time.
std::vector<Seen> Copy(Lane& lane, const Memory& there, const Memory& host, size_t bytes, int count) {
  std::vector<Seen> seen(static_cast<size_t>(count));
  Latch latch(count);
  for (Seen& each : seen) {
    each.submitted = Clock::now();
    lane.CopyIn(there.data(), host.data(), bytes, [&each, &latch](const Completion& completion) {
      each.noticed = Clock::now();
      each.completion = completion;
      latch.Arrive(completion.status);
    });
  }
  EXPECT_TRUE(latch.Wait().ok());
  return seen;
}

/// Each span lies between submission and completion; those of one lane ascend and never overlap.
void ExpectOrder(const std::vector<Seen>& seen) {
  for (size_t i = 0; i < seen.size(); ++i) {
    const Completion& completion = seen[i].completion;
    EXPECT_GE(completion.begin, seen[i].submitted) << i;
    EXPECT_LE(completion.begin, completion.end) << i;
    EXPECT_LE(completion.end, seen[i].noticed) << i;
    if (i > 0) {
      EXPECT_GE(completion.begin, seen[i - 1].completion.end) << i;
    }
  }
}

TEST_F(CudaTiming, SpansOfALaneLieWhereTheyRanAndNeverOverlap) {
  constexpr size_t kBytes = size_t{64} << 20;
  Memory host = testing::Pinned(*device_, kBytes), there = testing::Device(*device_, kBytes);
  const auto lane = testing::MakeLane(*device_);
  const auto seen = Copy(*lane, there, host, kBytes, 8);
  ExpectOrder(seen);
  // 64 MiB need 1.2 ms at 55 GB/s; nothing copies at 500 GB/s. Waiting for the other copies does not count.
  Clock::duration sum{0};
  for (const Seen& each : seen) {
    EXPECT_GT(each.completion.end - each.completion.begin, microseconds(134));
    sum += each.completion.end - each.completion.begin;
  }
  EXPECT_LE(sum, seen.back().completion.end - seen.front().completion.begin);
}

TEST_F(CudaTiming, SmallAndLateWorkKeepsItsPlace) {
  Memory host = testing::Pinned(*device_, kMiB), there = testing::Device(*device_, kMiB);
  const auto lane = testing::MakeLane(*device_);
  std::vector<Seen> all;
  // Pauses: the clocks drift apart and the anchor grows old.
  for (const auto pause : {milliseconds(0), milliseconds(1), milliseconds(300), milliseconds(2000)}) {
    std::this_thread::sleep_for(pause);
    for (const size_t bytes : {size_t{8}, size_t{4096}, size_t{kMiB}}) {
      const auto seen = Copy(*lane, there, host, bytes, 20);
      all.insert(all.end(), seen.begin(), seen.end());
    }
  }
  ExpectOrder(all);
}

TEST_F(CudaTiming, WhatOneLaneWaitsForComesFirstOnTheOther) {
  constexpr size_t kBytes = size_t{16} << 20;
  Memory host = testing::Pinned(*device_, kBytes), there = testing::Device(*device_, kBytes);
  const auto first = testing::MakeLane(*device_), second = testing::MakeLane(*device_);
  for (int round = 0; round < 20; ++round) {
    const auto before = Copy(*first, there, host, kBytes, 2);
    // Submitted once the other lane's copy was noticed, so it cannot have begun before that one's end.
    const auto after = Copy(*second, there, host, kBytes, 2);
    ExpectOrder(before);
    ExpectOrder(after);
    EXPECT_GE(after.front().completion.begin, before.back().completion.end);
    EXPECT_GT(after.front().completion.end - after.front().completion.begin, microseconds(33));
  }
}

TEST_F(CudaTiming, LanesThatShareACopyEngineTakeTurns) {
  constexpr size_t kBytes = size_t{32} << 20;
  Memory host = testing::Pinned(*device_, kBytes), there = testing::Device(*device_, kBytes);
  const auto first = testing::MakeLane(*device_), second = testing::MakeLane(*device_);
  std::vector<Seen> one, two;
  std::thread other([&] { two = Copy(*second, there, host, kBytes, 10); });
  one = Copy(*first, there, host, kBytes, 10);
  other.join();
  ExpectOrder(one);
  ExpectOrder(two);
  // All of it fits into the time that passed: 20 copies of 32 MiB at no more than 500 GB/s.
  const TimePoint begin = std::min(one.front().completion.begin, two.front().completion.begin);
  const TimePoint end = std::max(one.back().completion.end, two.back().completion.end);
  EXPECT_GE(begin, std::min(one.front().submitted, two.front().submitted));
  EXPECT_LE(end, std::max(one.back().noticed, two.back().noticed));
  EXPECT_GT(end - begin, microseconds(20 * 67));
}

}  // namespace
}  // namespace tilewire::engine
