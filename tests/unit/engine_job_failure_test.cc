// However a job ends: everybody is told once, everything leased comes back, and not before the device is
// done.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/engine_testing.h"
#include "tests/unit/held_device.h"

namespace tilewire::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::Chunks;
using testing::Problem;

const Status kGone(Code::kCancelled, "GONE", "the client left");
const Status kToldToFail(Code::kInternal, "BROKEN", "told to fail");

TEST(JobFailure, AtAnyMomentLeavesNothingBehind) {
  std::mt19937_64 random(21);
  testing::Setup setup;
  setup.slow = SlowOptions{.jitter = microseconds(60), .seed = 3};
  const auto gate = std::make_shared<tilewire::testing::Gate>();
  setup.wrap = tilewire::testing::HeldBy(gate);
  int failed = 0;
  for (const bool staged : {true, false}) {
    setup.staged = staged;
    const auto engine = testing::MakeEngine(setup);
    // Who is first depends on the machine, so it goes on until enough jobs were hit.
    const int before = failed;
    for (uint64_t round = 0; round < 25 || (failed - before < 3 && round < 1000); ++round) {
      const Problem problem =
          round % 2 == 0 ? testing::FineRmseProblem(round) : testing::FineTransposeProblem(round);
      const auto job = *testing::Open(*engine, problem.make());
      const tilewire::testing::AtSubmission killer(gate, static_cast<int64_t>(random() % 60), [job] {
        job->Fail(kGone);
        job->Fail(kToldToFail);  // the first reason stays
      });
      {
        const testing::Feeders feeders(
            job, problem, testing::Scattered(problem, setup.options.block_bytes, 1 + round % 3, random));
        const auto output = testing::Collect(*job);
        if (output) {
          EXPECT_EQ(*output, problem.expected);
        } else {
          EXPECT_EQ(output.error().reason(), "GONE");
          EXPECT_EQ(job->status().reason(), "GONE");
          EXPECT_EQ(testing::Collect(*job).error().reason(), "GONE");
          ++failed;
        }
      }
    }
    EXPECT_TRUE(testing::BecomesIdle(*engine));
  }
  EXPECT_GE(failed, 6);
}

TEST(JobFailure, TellsEveryWaiterExactlyOnce) {
  testing::Setup setup;
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::FineTransposeProblem(1);
  const auto job = *testing::Open(*engine, problem.make());
  std::vector<std::unique_ptr<Intake>> intakes;
  for (uint64_t i = 0; i < 3; ++i) {  // all staging blocks are out
    intakes.push_back(std::make_unique<Intake>(job));
    ASSERT_TRUE(intakes.back()->BeginChunk(0, i * 4096, 1).ok());
    ASSERT_TRUE(intakes.back()->NextPlace());
  }
  int blocks = 0, outputs = 0;
  Status told;
  job->WhenBlockFree([&] { ++blocks; });
  job->WhenBlockFree([&] { ++blocks; });
  job->NextOutput([&](auto piece) {
    ++outputs;
    told = piece ? Status() : piece.error();
  });
  EXPECT_EQ(blocks + outputs, 0);
  job->Fail(kGone);
  EXPECT_EQ(blocks, 2);
  EXPECT_EQ(outputs, 1);
  EXPECT_EQ(told.reason(), "GONE");
  intakes.clear();
  job->Fail(kToldToFail);
  EXPECT_EQ(blocks + outputs, 3);
}

TEST(JobFailure, LaunchesNothingMore) {
  for (const int lanes : {2, 3}) {
    testing::Setup setup;
    setup.options.lanes = lanes;
    const auto gate = std::make_shared<tilewire::testing::Gate>();
    setup.wrap = tilewire::testing::HeldBy(gate);
    setup.faults = std::make_shared<Faults>();
    const auto engine = testing::MakeEngine(setup);
    gate->Close();
    const Problem problem = testing::FineTransposeProblem(1);
    {
      const auto job = *testing::Open(*engine, problem.make());
      Intake intake(job);
      EXPECT_TRUE(testing::Send(*job, intake, {0, 0, 3 * 4096}, problem.operands[0]).ok());  // a whole range
      job->Fail(kGone);  // its copies are still on their way
      gate->Open();
    }
    EXPECT_TRUE(testing::BecomesIdle(*engine));
    EXPECT_EQ(setup.faults->count(Submitted::kCopyIn), 3);
    EXPECT_EQ(setup.faults->count(Submitted::kLaunch), 0);
  }
}

TEST(JobFailure, AfterTheLastOutputIsNone) {
  testing::Setup setup;
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::FineRmseProblem(1);
  const auto job = *testing::Open(*engine, problem.make());
  const testing::Feeders feeders(job, problem, {testing::Ascending(problem, 10'000)});
  EXPECT_EQ(testing::Collect(*job).value(), problem.expected);
  job->Fail(kGone);
  EXPECT_TRUE(job->status().ok());
}

// Only one job fits. The failed one's copies and kernels are late; were its memory given to the next one
// before they are done, they would spoil the next one's bytes.
TEST(JobFailure, MemoryIsFreedOnlyWhenTheDeviceIsDone) {
  int still_in_flight = 0;
  for (const bool staged : {true, false}) {
    testing::Setup setup;
    setup.staged = staged;
    setup.options.device_bytes = 800 << 10;
    setup.slow =
        SlowOptions{.copy_in = microseconds(100), .launch = microseconds(700), .jitter = microseconds(200)};
    const auto engine = testing::MakeEngine(setup);
    // A thread that is kept waiting finds the device done: such rounds test nothing and do not count.
    const int before = still_in_flight;
    for (uint64_t round = 0; round < 4 || (still_in_flight == before && round < 200); ++round) {
      const Problem doomed = testing::FineTransposeProblem(100 + round);
      const Problem next = testing::FineTransposeProblem(200 + round);
      {
        const auto job = *testing::Open(*engine, doomed.make());
        Intake intake(job);
        ASSERT_TRUE(testing::Send(*job, intake, {0, 0, 37 * 4096}, doomed.operands[0]).ok());
        job->Fail(kGone);
      }
      still_in_flight += engine->stats().jobs_in_flight == 1;
      const auto output = testing::RunJob(*engine, next, {testing::Ascending(next, 60'000)});
      ASSERT_TRUE(output) << output.error().ToString();
      EXPECT_EQ(*output, next.expected);
      EXPECT_TRUE(testing::BecomesIdle(*engine));
    }
  }
  EXPECT_GE(still_in_flight, 2);  // or it tested nothing
}

TEST(JobFailure, AFaultAtEverySubmissionFailsThatJobAlone) {
  const Problem problems[] = {testing::RmseProblem(DType::kU8, {5 * 4096}, {}, 1, 1),
                              testing::TransposeProblem(DType::kU8, {5, 64, 128}, {0, 2, 1}, 1, true)};
  const int64_t submissions[2][kSubmittedCount] = {{10, 1, 6}, {10, 10, 5}};  // copies in, out, launches
  testing::Setup setup;
  setup.faults = std::make_shared<Faults>();
  const auto engine = testing::MakeEngine(setup);
  for (int which = 0; which < 2; ++which) {
    const Problem& problem = problems[which];
    const std::vector<Chunks> streams = {testing::Ascending(problem, 7000)};
    for (int kind = 0; kind < kSubmittedCount; ++kind) {
      for (int64_t nth = 1; nth <= submissions[which][kind]; ++nth) {
        setup.faults->FailNth(static_cast<Submitted>(kind), nth, kToldToFail);
        const auto output = testing::RunJob(*engine, problem, streams);
        ASSERT_FALSE(output) << "problem " << which << " kind " << kind << " nth " << nth;
        EXPECT_EQ(output.error().reason(), "BROKEN");
        ASSERT_TRUE(testing::BecomesIdle(*engine));
      }
      const int64_t before = setup.faults->count(static_cast<Submitted>(kind));
      const auto output = testing::RunJob(*engine, problem, streams);
      ASSERT_TRUE(output) << output.error().ToString();
      EXPECT_EQ(*output, problem.expected);
      EXPECT_EQ(setup.faults->count(static_cast<Submitted>(kind)) - before, submissions[which][kind]);
    }
  }
  EXPECT_FALSE(engine->stats().device_failed);
}

TEST(JobFailure, OutOfMemoryAtEveryAllocationIsBusyAndGivesAllBack) {
  testing::Setup setup;
  setup.shortage = std::make_shared<Shortage>();
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::FineRmseProblem(1);
  // Device: two operands, result, scratch. Pinned: three blocks an operand, one for the small result.
  for (const auto& [pinned, allocations] : {std::pair(false, 4), std::pair(true, 7)}) {
    for (int nth = 1; nth <= allocations + 1; ++nth) {
      pinned ? setup.shortage->FailNthPinned(nth) : setup.shortage->FailNthDevice(nth);
      const auto output = testing::RunJob(*engine, problem, {testing::Ascending(problem, 30'000)});
      ASSERT_EQ(output.has_value(), nth > allocations) << (pinned ? "pinned " : "device ") << nth;
      if (output) {
        EXPECT_EQ(*output, problem.expected);
      } else {
        EXPECT_EQ(output.error().code(), Code::kResourceExhausted);
        EXPECT_EQ(output.error().reason(), "BUSY");
        EXPECT_GE(output.error().detail()->retry_after_ms, 0);
      }
      ASSERT_TRUE(testing::BecomesIdle(*engine));
      ASSERT_TRUE(testing::Becomes([&] { return setup.shortage->leased_device_bytes() == 0; }));
    }
    pinned ? setup.shortage->FailNthPinned(0) : setup.shortage->FailNthDevice(0);
  }
  EXPECT_EQ(setup.shortage->refused(), 11);
}

}  // namespace
}  // namespace tilewire::engine
