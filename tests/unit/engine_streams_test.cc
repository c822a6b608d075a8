// A job that several streams carry and take output from, each on a thread of its own.
#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/engine_testing.h"

namespace tilewire::engine {
namespace {

using testing::Carry;
using testing::Chunks;
using testing::Problem;
using testing::Take;

TEST(JobStreams, ShareBlocksAndOutputWithTheSameBits) {
  std::mt19937_64 random(20251120);
  for (int round = 0; round < 60; ++round) {
    testing::Setup setup;
    setup.options.block_bytes = 4096;
    setup.options.lanes = static_cast<int>(1 + random() % 4);
    setup.staged = round % 3 != 0;
    const Problem problem = round % 2 == 0 ? testing::RmseProblem(DType::kF32, {40, 999}, {1}, round)
                                           : testing::TransposeProblem(DType::kU16, {123, 457}, {}, round);
    const auto engine = testing::MakeEngine(setup);
    const auto wanted = static_cast<int>(1 + random() % 9);
    const auto job = testing::Open(*engine, problem.make(), {.streams = wanted}).value();
    ASSERT_EQ(job->max_streams(), wanted);
    for (int stream = 1; stream < wanted; ++stream) ASSERT_EQ(job->Join().value(), stream);
    const auto plan = testing::Scattered(problem, 4096, static_cast<size_t>(wanted), random);
    testing::Bytes out(problem.expected.size());
    std::vector<std::thread> threads;
    for (int stream = 0; stream < wanted; ++stream)
      threads.emplace_back([&, stream] {
        const Status status = Carry(job, stream, problem, plan[static_cast<size_t>(stream)], &out);
        EXPECT_TRUE(status.ok()) << stream << ": " << status.ToString();
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(out, problem.expected) << "round " << round << ", streams " << wanted;
  }
}

TEST(JobStreams, TheFirstHearsTheEndAfterTheJoinedOnes) {
  const auto engine = testing::MakeEngine({});
  const Problem problem = testing::TransposeProblem(DType::kU16, {64, 64}, {}, 1);
  const auto job = testing::Open(*engine, problem.make(), {.streams = 2}).value();
  ASSERT_EQ(job->Join().value(), 1);
  testing::Bytes out(problem.expected.size());
  {
    Intake intake(job, 0);
    for (const testing::Chunk& chunk : testing::Ascending(problem, 1 << 20))
      ASSERT_TRUE(testing::Send(*job, intake, chunk, problem.operands[0]).ok());
    ASSERT_TRUE(intake.HalfClosed().ok());
  }
  job->InputEnded(0);
  job->InputEnded(1);                     // it sent nothing,
  ASSERT_TRUE(Take(*job, 1, &out).ok());  // and takes everything
  EXPECT_EQ(out, problem.expected);
  std::promise<bool> first;
  auto ended = first.get_future();
  job->NextOutput(0, true, [&first](auto piece) { first.set_value(piece && !*piece); });
  EXPECT_NE(ended.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  job->StreamDone(1);
  EXPECT_TRUE(ended.get()) << "the end of the output";
}

TEST(JobStreams, ALostStreamIsToldItsOwnReasonAndTheOthersThatItWasLost) {
  const auto engine = testing::MakeEngine({});
  const Problem problem = testing::TransposeProblem(DType::kU16, {640, 64}, {}, 1);
  auto job = testing::Open(*engine, problem.make(), {.streams = 3}).value();
  ASSERT_EQ(job->Join().value(), 1);
  ASSERT_EQ(job->Join().value(), 2);
  EXPECT_EQ(job->Join().error().reason(), "LIMIT");
  testing::Bytes out(problem.expected.size());
  const Status gone(Code::kCancelled, "CANCELLED", "gone");
  job->StreamLost(1, gone);
  job->StreamLost(2, Status(Code::kInternal, "LATE", "the first reason stays"));
  EXPECT_EQ(Take(*job, 1, &out).reason(), "CANCELLED");
  EXPECT_EQ(Take(*job, 0, &out).reason(), "STREAM_LOST");
  EXPECT_EQ(Take(*job, 2, &out).reason(), "STREAM_LOST");
  EXPECT_EQ(job->status(1).reason(), "CANCELLED");
  EXPECT_EQ(job->Join().error().reason(), "STREAM_LOST");
  job.reset();
  EXPECT_TRUE(testing::BecomesIdle(*engine));
}

TEST(JobStreams, StreamsAreGrantedOnlyWhereStagingIsThereForThem) {
  testing::Setup setup;
  setup.options.block_bytes = 4096;
  setup.options.pinned_bytes = 1 << 20;
  setup.options.max_streams = 12;
  const auto engine = testing::MakeEngine(setup);
  const Problem large = testing::TransposeProblem(DType::kU16, {1000, 500}, {}, 1);
  // 256 KiB, a quarter of the budget, hold 64 blocks: of streams + 2 for the operand and as many for the
  // result.
  EXPECT_EQ(testing::Open(*engine, large.make(), {.streams = 100}).value()->max_streams(), 12);
  setup.options.pinned_bytes = 128 << 10;
  const auto poor = testing::MakeEngine(setup);
  EXPECT_EQ(testing::Open(*poor, large.make(), {.streams = 100}).value()->max_streams(), 2);
  EXPECT_EQ(testing::Open(*poor, large.make(), {.streams = 0}).value()->max_streams(), 1);
}

}  // namespace
}  // namespace tilewire::engine
