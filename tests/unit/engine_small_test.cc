// Small jobs where kernels reach pinned memory: no staging, no copies, one wait; and the same bits.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/engine_testing.h"

namespace tilewire::engine {
namespace {

using testing::Problem;

testing::Setup ShortPath() {
  testing::Setup setup;
  setup.reach_pinned = true;
  return setup;
}

/// Slow enough for a result that is read before its kernel has ended to be wrong.
testing::Setup SlowShortPath() {
  testing::Setup setup = ShortPath();
  setup.slow = SlowOptions{.launch = std::chrono::milliseconds(5)};
  return setup;
}

std::vector<Problem> SmallProblems() {
  std::vector<Problem> problems;
  problems.push_back(testing::RmseProblem(DType::kF32, {1000}, {}, 1));
  problems.push_back(testing::RmseProblem(DType::kU8, {37, 501}, {1}, 2));
  problems.push_back(testing::RmseProblem(DType::kF64, {9, 333}, {0}, 3));
  problems.push_back(testing::RmseProblem(DType::kI8, {10 * 4096 + 3}, {}, 4, 2));  // six ranges and a finish
  problems.push_back(testing::TransposeProblem(DType::kI16, {31, 549}, {1, 0}, 5));
  problems.push_back(testing::TransposeProblem(DType::kF32, {5, 31, 49}, {0, 2, 1}, 6, true));
  problems.push_back(testing::GaussianProblem(DType::kF32, {9001}, 0.25, 1.5, 7, 3072));
  return problems;
}

TEST(SmallJobs, HaveTheSameBitsInPinnedMemory) {
  std::mt19937_64 random(11);
  const auto problems = SmallProblems();
  for (const auto& setup : {ShortPath(), SlowShortPath()}) {
    const auto engine = testing::MakeEngine(setup);
    for (size_t i = 0; i < problems.size(); ++i) {
      const auto output =
          testing::RunJob(*engine, problems[i], testing::Scattered(problems[i], 4096, 2, random));
      ASSERT_TRUE(output) << i << ": " << output.error().ToString();
      EXPECT_EQ(*output, problems[i].expected) << i;
    }
    EXPECT_TRUE(testing::BecomesIdle(*engine));
  }
}

TEST(SmallJobs, CopyNothingAndLeaseNoStaging) {
  const auto engine = testing::MakeEngine(ShortPath());
  const Problem problem = testing::RmseProblem(DType::kF32, {12'000}, {}, 1);
  const auto job = testing::Open(*engine, problem.make());
  ASSERT_TRUE(job) << job.error().ToString();
  const EngineStats stats = engine->stats();
  // Two operands of 48,000 bytes and the result in one pinned piece; on the device only three tile sums.
  EXPECT_GE(stats.pinned_bytes_in_use, 96'008);
  EXPECT_LE(stats.pinned_bytes_in_use, 96'008 * 107 / 100 + 1024);
  EXPECT_LE(stats.device_bytes_in_use, 1024);
  const testing::Feeders feeders(*job, problem, {testing::Ascending(problem, 5000)});
  const auto output = testing::Collect(**job);
  ASSERT_TRUE(output) << output.error().ToString();
  EXPECT_EQ(*output, problem.expected);
  const Timing timing = (*job)->timing();
  EXPECT_LT(timing.of(Stage::kH2D), 0) << "no copy to tell of";
  EXPECT_LT(timing.of(Stage::kD2H), 0);
  EXPECT_GE(timing.of(Stage::kKernel), 0);
}

TEST(SmallJobs, BulkStillGoesThroughStaging) {
  const auto engine = testing::MakeEngine(ShortPath());
  const Problem problem = testing::RmseProblem(DType::kF32, {40'000}, {}, 1);
  const auto job = testing::Open(*engine, problem.make());
  ASSERT_TRUE(job) << job.error().ToString();
  EXPECT_GE(engine->stats().device_bytes_in_use, 320'000);
  const testing::Feeders feeders(*job, problem, {testing::Ascending(problem, 5000)});
  const auto output = testing::Collect(**job);
  ASSERT_TRUE(output) << output.error().ToString();
  EXPECT_EQ(*output, problem.expected);
  EXPECT_GE((*job)->timing().of(Stage::kH2D), 0);
}

TEST(SmallJobs, FailCleanlyInPinnedMemory) {
  testing::Setup setup = SlowShortPath();
  setup.faults = std::make_shared<Faults>();
  const auto engine = testing::MakeEngine(setup);
  for (const Problem& problem : SmallProblems()) {
    setup.faults->FailNth(Submitted::kLaunch, 1, Status(Code::kInternal, "INTERNAL_ERROR", "told to fail"));
    const auto output = testing::RunJob(*engine, problem, {testing::Ascending(problem, 4096)});
    ASSERT_FALSE(output);
    EXPECT_EQ(output.error().reason(), "INTERNAL_ERROR");
    EXPECT_TRUE(testing::BecomesIdle(*engine));
  }
}

TEST(SmallJobs, OutOfPinnedMemoryIsBusy) {
  testing::Setup setup = ShortPath();
  setup.shortage = std::make_shared<Shortage>();
  setup.shortage->FailNthPinned(1);
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::RmseProblem(DType::kF32, {100}, {}, 1);
  const auto refused = testing::Open(*engine, problem.make());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "BUSY");
  EXPECT_TRUE(testing::BecomesIdle(*engine));
  EXPECT_TRUE(testing::RunJob(*engine, problem, {testing::Ascending(problem, 400)}));
}

}  // namespace
}  // namespace tilewire::engine
