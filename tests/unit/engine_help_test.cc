// Who serves a lane: its own thread, a helper, or whoever is left when a helper that was announced has gone.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/unit/engine_testing.h"
#include "tests/unit/lane_checks.h"

namespace tilewire::engine {
namespace {

using testing::Latch;
using testing::Problem;
constexpr std::chrono::microseconds kLong = std::chrono::minutes(1), kNone{0};

/// A lane of the CPU device and memory to copy to.
class HelpTest : public ::testing::Test {
 protected:
  void Copy(OnComplete done) { lane_->CopyIn(memory_.data(), &byte_, 1, std::move(done)); }
  /// Submits until that woke the lane's thread: it has slept, and serves.
  void WakeOnce() {
    const uint64_t before = lane_->wakes();
    EXPECT_TRUE(testing::Becomes([&] {
      Latch done(1);
      Copy(done.Callback());
      EXPECT_TRUE(done.Wait().ok());
      return lane_->wakes() > before;
    }));
  }

  const std::unique_ptr<engine::Device> device_ = OpenCpuDevice(2);
  Memory memory_ = device_->AllocateDevice(64).value();
  const std::byte byte_{7};
  const std::unique_ptr<Lane> lane_ = testing::MakeLane(*device_);
};

TEST_F(HelpTest, ASubmissionThatNobodyHelpsWakesTheLanesThread) {
  for (int i = 0; i < 20; ++i) WakeOnce();
}

TEST_F(HelpTest, AnAnnouncedHelperIsWokenForNobody) {
  WakeOnce();
  const uint64_t before = lane_->wakes();
  for (int i = 0; i < 200; ++i) {
    Latch done(3);
    lane_->AnnounceHelp();
    for (int j = 0; j < 3; ++j) Copy(done.Callback());
    lane_->Help(kLong);
    lane_->WithdrawHelp();
    EXPECT_TRUE(done.Wait().ok());
  }
  EXPECT_EQ(lane_->wakes(), before);
}

TEST_F(HelpTest, WhatAHelperLeavesIsServed) {
  for (const auto budget : {kNone, std::chrono::microseconds(1)}) {
    for (int i = 0; i < 100; ++i) {
      Latch done(5);
      lane_->AnnounceHelp();
      for (int j = 0; j < 5; ++j) Copy(done.Callback());
      lane_->Help(budget);
      lane_->WithdrawHelp();
      EXPECT_TRUE(done.Wait().ok());
    }
  }
}

TEST_F(HelpTest, WithdrawnHelpIsReplaced) {
  Latch done(2);
  lane_->AnnounceHelp();
  lane_->AnnounceHelp();
  Copy(done.Callback());
  lane_->WithdrawHelp();
  Copy(done.Callback());
  lane_->WithdrawHelp();
  EXPECT_TRUE(done.Wait().ok());
}

TEST_F(HelpTest, ACallbackOfAHelperMaySubmit) {
  Latch done(2);
  lane_->AnnounceHelp();
  Copy([&](const Completion& completion) {
    Copy(done.Callback());
    done.Arrive(completion.status);
  });
  lane_->WithdrawHelp();
  EXPECT_TRUE(done.Wait().ok());
}

TEST_F(HelpTest, AnnouncementsAndSubmissionsFromAllSidesLoseNothing) {
  constexpr int kThreads = 6, kEach = 400;
  int in_order = 0;  // unguarded on purpose: callbacks must not overlap
  Latch done(kThreads * kEach);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const bool helps = t % 3 > 0;
        if (helps) lane_->AnnounceHelp();
        Copy([&](const Completion& completion) {
          ++in_order;
          done.Arrive(completion.status);
        });
        if (t % 3 == 1) lane_->Help(std::chrono::microseconds(i % 20));
        if (helps) lane_->WithdrawHelp();
      }
    });
  EXPECT_TRUE(done.Wait().ok());
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(in_order, kThreads * kEach);
}

// --- jobs ---------------------------------------------------------------------------------------------

std::vector<testing::Setup> HelpSetups() {
  std::vector<testing::Setup> setups(4);
  setups[1].staged = false;
  setups[2].reach_pinned = true;
  for (int i : {1, 3}) setups[i].options.small_lanes = 3;
  return setups;
}

JobOptions Helped() {
  JobOptions options;
  options.helped = true;
  return options;
}

/// As a unary call does: one thread brings everything, helps and takes what there is.
void RunHelped(Engine& engine, const Problem& problem) {
  const auto opened = testing::Open(engine, problem.make(), Helped());
  ASSERT_TRUE(opened) << opened.error().ToString();
  Job& job = **opened;
  {
    Intake intake(*opened);
    for (const auto& chunk : testing::Ascending(problem, 5000))
      ASSERT_TRUE(testing::Send(job, intake, chunk, problem.operands[chunk.operand]).ok());
  }
  job.InputEnded();
  job.Help();
  const auto output = testing::Collect(job);
  ASSERT_TRUE(output) << output.error().ToString();
  EXPECT_EQ(*output, problem.expected);
}

TEST(HelpedJobs, AreServedHoweverTheyLie) {
  // The second has six blocks an operand and fewer staging blocks: it must wait before it helps.
  const Problem problems[] = {testing::RmseProblem(DType::kF32, {1000}, {}, 1),
                              testing::RmseProblem(DType::kI8, {6 * 4096 + 3}, {}, 4, 2)};
  for (const auto& setup : HelpSetups()) {
    const auto engine = testing::MakeEngine(setup);
    for (const Problem& problem : problems)
      for (int i = 0; i < 20; ++i) RunHelped(*engine, problem);
    EXPECT_TRUE(testing::BecomesIdle(*engine));
  }
}

TEST(HelpedJobs, OfManyCallersAreServed) {
  const Problem problem = testing::RmseProblem(DType::kF32, {1000}, {}, 1);
  for (const auto& setup : HelpSetups()) {
    const auto engine = testing::MakeEngine(setup);
    std::vector<std::thread> callers;
    for (int t = 0; t < 8; ++t)
      callers.emplace_back([&] {
        for (int i = 0; i < 50; ++i) RunHelped(*engine, problem);
      });
    for (auto& caller : callers) caller.join();
    EXPECT_TRUE(testing::BecomesIdle(*engine));
  }
}

TEST(HelpedJobs, ThatEndEarlyLeaveTheLaneToOthers) {
  const Problem problem = testing::RmseProblem(DType::kF32, {1000}, {}, 1);
  for (const auto& setup : HelpSetups()) {
    const auto engine = testing::MakeEngine(setup);
    {
      const auto dropped = testing::Open(*engine, problem.make(), Helped());
      ASSERT_TRUE(dropped);
      (*dropped)->Fail(Status(Code::kCancelled, "CANCELLED", "told to"));
    }
    EXPECT_TRUE(testing::BecomesIdle(*engine));
    const auto output = testing::RunJob(*engine, problem, {testing::Ascending(problem, 5000)});
    ASSERT_TRUE(output) << output.error().ToString();
    EXPECT_EQ(*output, problem.expected);
  }
}

TEST(HelpedJobs, ThatWaitedToBeLetInNeedNoHelp) {
  // The second is opened by whoever drops the first: its opener is elsewhere by then, and may be long.
  testing::Setup setup;
  setup.options.max_in_flight = 1;
  const Problem problem = testing::RmseProblem(DType::kF32, {1000}, {}, 1);
  const auto engine = testing::MakeEngine(setup);
  auto first = testing::Open(*engine, problem.make()).value();
  std::promise<Result<std::shared_ptr<Job>>> opened;
  engine->Open(problem.make(), Helped(), [&](auto job) { opened.set_value(std::move(job)); });
  std::thread([&] { first.reset(); }).join();
  const auto second = opened.get_future().get();
  ASSERT_TRUE(second);
  const testing::Feeders feeders(*second, problem, {testing::Ascending(problem, 5000)});
  const auto output = testing::Collect(**second);
  ASSERT_TRUE(output) << output.error().ToString();
  EXPECT_EQ(*output, problem.expected);
}

TEST(BulkJobs, KernelsBehindCopiesWakeNobody) {
  std::vector<const Lane*> lanes;
  testing::Setup setup;
  setup.wrap = [&lanes](auto device) {
    return std::make_unique<testing::LaneWrapper>(std::move(device), [&lanes](auto lane) {
      lanes.push_back(lane.get());
      return lane;
    });
  };
  const auto engine = testing::MakeEngine(setup);
  ASSERT_GE(lanes.size(), 3U);
  const Problem problem = testing::FineTransposeProblem(3);
  // A thread that is taken off its processor for long leaves the kernel to the lane's own one: not every
  // time.
  EXPECT_TRUE(testing::Becomes([&] {
    const uint64_t before = lanes[1]->wakes();
    const auto output = testing::RunJob(*engine, problem, {testing::Ascending(problem, 50'000)});
    EXPECT_TRUE(output && *output == problem.expected);
    return lanes[1]->wakes() == before;
  }));
}

}  // namespace
}  // namespace tilewire::engine
