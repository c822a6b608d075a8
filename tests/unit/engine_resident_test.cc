// Jobs whose operands lie on the device already, whose result stays there, or both: the same bits as ever.
#include <gtest/gtest.h>

#include "tests/unit/engine_arrays_testing.h"
#include "tests/unit/engine_window_testing.h"

namespace tilewire::engine {
namespace {

using testing::Bytes;
using testing::Problem;

/// Every kind of memory and of scheduling that a job may meet.
std::vector<testing::Setup> SlowSetups() {
  std::vector<testing::Setup> setups = testing::SetupsOfEveryKind();
  // Slow enough for a result that is used before its kernel has ended to be wrong.
  for (auto& setup : setups) setup.slow = SlowOptions{.launch = std::chrono::microseconds(300)};
  return setups;
}

/// Opens a problem's job with the operands of `mask` put before; the caller brings the rest.
struct Opened {
  std::shared_ptr<Job> job;
  std::vector<bool> resident;
};
Opened OpenWith(Engine& engine, const Problem& problem, unsigned mask, JobOptions options = {}) {
  const auto operation = problem.make();
  Opened opened;
  for (size_t i = 0; i < problem.operands.size(); ++i) {
    opened.resident.push_back((mask >> i & 1) != 0);
    options.residents.emplace_back();
    if (!opened.resident.back()) continue;
    options.residents.back() = testing::PutForUse(engine, problem.operands[i], operation->operands()[i]);
  }
  auto job = testing::Open(engine, problem.make(), options);
  EXPECT_TRUE(job) << job.error().ToString();
  if (job) opened.job = *job;
  return opened;
}

TEST(Resident, EveryMixOfOperandsHasTheSameBits) {
  for (const auto& setup : SlowSetups()) {
    const auto engine = testing::MakeEngine(setup);
    for (const Problem& problem : testing::ProblemsOfEveryKind())
      for (unsigned mask = 0; mask < 1U << problem.operands.size(); ++mask) {
        auto opened = OpenWith(*engine, problem, mask);
        ASSERT_TRUE(opened.job);
        const auto output = testing::Finish(opened.job, problem, opened.resident);
        ASSERT_TRUE(output) << output.error().ToString();
        EXPECT_EQ(*output, problem.expected) << problem.make()->name() << ", resident " << mask;
        uint64_t streamed = 0;
        for (size_t i = 0; i < problem.operands.size(); ++i)
          if (!opened.resident[i]) streamed += problem.operands[i].size();
        EXPECT_EQ(opened.job->timing().bytes_in, streamed);
      }
    EXPECT_TRUE(testing::BecomesIdle(*engine)) << "deleted arrays go with their last use";
  }
}

TEST(Resident, StoredResultsAreArraysOfTheirOwn) {
  for (const auto& setup : SlowSetups()) {
    const auto engine = testing::MakeEngine(setup);
    for (const Problem& problem : testing::ProblemsOfEveryKind())
      for (const unsigned mask : {0U, 1U}) {
        auto opened = OpenWith(*engine, problem, mask, {.store = StoreOptions{}});
        ASSERT_TRUE(opened.job);
        std::string id;
        const auto output = testing::Finish(opened.job, problem, opened.resident, &id);
        ASSERT_TRUE(output) << output.error().ToString();
        EXPECT_TRUE(output->empty());
        EXPECT_EQ(opened.job->timing().bytes_out, 0U);
        opened.job.reset();
        const auto kept = testing::Get(*engine, id);
        ASSERT_TRUE(kept) << kept.error().ToString();
        EXPECT_EQ(*kept, problem.expected) << problem.make()->name();
        EXPECT_EQ(testing::Get(*engine, id, "somebody").error().reason(), "ARRAY");
        EXPECT_TRUE(testing::OnlyArraysLeft(*engine));
        EXPECT_EQ(engine->stats().arrays_stored, 1U);
        EXPECT_TRUE(engine->arrays().Delete(id, "anonymous").ok());
      }
    EXPECT_TRUE(testing::BecomesIdle(*engine));
  }
}

TEST(Resident, WhatIsAllThereIsOneLaunch) {
  testing::Setup setup;
  setup.faults = std::make_shared<Faults>();
  const auto engine = testing::MakeEngine(setup);
  std::vector<Problem> problems;
  problems.push_back(testing::RmseProblem(DType::kF32, {3'000'000}, {}, 1));
  problems.push_back(testing::TransposeProblem(DType::kF32, {16, 1000, 200}, {0, 2, 1}, 2));
  problems.push_back(testing::GaussianProblem(DType::kF32, {3'000'000}, 0.25, 1.5, 3));
  for (const Problem& problem : problems) {
    ASSERT_GT(problem.make()->range_count(), 1) << "else there is nothing to see";
    const auto before = setup.faults->count(Submitted::kLaunch);
    auto opened = OpenWith(*engine, problem, 3);
    ASSERT_TRUE(opened.job);
    EXPECT_FALSE(opened.job->takes_input());
    const auto output = testing::Collect(*opened.job);
    ASSERT_TRUE(output);
    EXPECT_EQ(*output, problem.expected);
    EXPECT_EQ(setup.faults->count(Submitted::kLaunch) - before, 1);
    opened = {};
    EXPECT_TRUE(testing::BecomesIdle(*engine)) << "the next problem needs the quota";
  }
}

TEST(Resident, NothingIsSentForResidentOperands) {
  const auto engine = testing::MakeEngine({});
  const Problem problem = testing::FineRmseProblem(1);
  auto opened = OpenWith(*engine, problem, 2);
  Intake intake(opened.job);
  const Status refused = intake.BeginChunk(1, 0, 1);
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.detail()->field, "chunk.operand");
  EXPECT_TRUE(intake.BeginChunk(0, 0, 1).ok());
}

TEST(Resident, SeveralStreamsCarryWhatNeedsNoInput) {
  for (const bool staged : {true, false}) {
    testing::Setup setup;
    setup.staged = staged;
    const auto engine = testing::MakeEngine(setup);
    const Bytes bytes = testing::RandomBytes(300'001, 5);
    JobOptions options{.streams = 3};
    options.residents = {testing::PutForUse(*engine, bytes, testing::SpecOf({300'001}))};
    const auto job = *testing::Open(*engine, MakePass(testing::SpecOf({300'001}), "get"), options);
    options.residents.clear();
    EXPECT_GE(job->max_streams(), 3);
    Bytes out(bytes.size());
    // All join first: nobody joins once all output was taken, which one stream's thread may do alone.
    for (int number = 1; number < 3; ++number) ASSERT_EQ(job->Join().value(), number);
    std::vector<std::thread> joined;
    for (int number = 1; number < 3; ++number) {
      joined.emplace_back([&job, &out, number] {
        job->InputEnded(number);
        EXPECT_TRUE(testing::Take(*job, number, &out).ok());
        job->StreamDone(number);
      });
    }
    EXPECT_TRUE(testing::Take(*job, 0, &out).ok());
    for (auto& thread : joined) thread.join();
    EXPECT_EQ(out, bytes);
    const auto late = job->Join();
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().reason(), "JOIN_LATE");
  }
}

TEST(Resident, TheSameKeyStoresOnce) {
  const auto engine = testing::MakeEngine({});
  const Problem problem = testing::FineTransposeProblem(1);
  StoreOptions store{.key = "once"};
  std::string first, again;
  auto opened = OpenWith(*engine, problem, 0, {.store = store});
  ASSERT_TRUE(testing::Finish(opened.job, problem, opened.resident, &first));
  const uint64_t ranges = engine->stats().ranges_computed;
  const auto job = testing::Open(*engine, problem.make(), {.store = store});
  ASSERT_TRUE(job);
  EXPECT_FALSE((*job)->takes_input());
  EXPECT_EQ((*job)->operation().numeric_version(), "transpose.1");
  ASSERT_TRUE(testing::Collect(**job));
  EXPECT_EQ((*job)->stored_id(), first);
  EXPECT_EQ(engine->stats().ranges_computed, ranges);
  EXPECT_EQ(testing::Get(*engine, first).value(), problem.expected);
}

TEST(Resident, WindowsPassAlongWholeArrays) {
  testing::Setup setup;
  setup.options.device_bytes = 2 << 20;
  setup.options.store.bytes = setup.options.store.bytes_per_identity = 1500 << 10;
  const auto engine = testing::MakeEngine(setup);
  // Each operand has 1.2 MB: both do not fit 7/8 of 2 MiB, one and a ring do.
  const Problem problem = testing::RmseProblem(DType::kU8, {300 * 4096 - 7}, {}, 5, 1);
  auto opened = OpenWith(*engine, problem, 2, {.may_window = true});
  ASSERT_TRUE(opened.job);
  EXPECT_GT(opened.job->window_bytes(), 0);
  const auto output = testing::Finish(opened.job, problem, opened.resident);
  ASSERT_TRUE(output) << output.error().ToString();
  EXPECT_EQ(*output, problem.expected);
  opened.job.reset();
  EXPECT_TRUE(testing::BecomesIdle(*engine));
}

TEST(Resident, WindowsThatCannotBeAreRefused) {
  testing::Setup setup;
  setup.options.device_bytes = 2 << 20;
  setup.options.store.bytes = setup.options.store.bytes_per_identity = 1500 << 10;
  const auto engine = testing::MakeEngine(setup);
  // The result alone has 1.2 MB and so has the array.
  const Problem problem = testing::GaussianProblem(DType::kF32, {300'000}, 0.25, 1.5, 3, 3072);
  const auto id = testing::Put(*engine, problem.operands[0], problem.make()->operands()[0]);
  ASSERT_TRUE(id) << id.error().ToString();
  JobOptions options{.may_window = true};
  options.residents = {*engine->arrays().Use(*id, "anonymous", "array")};
  // It would fit, but not beside the array that it uses itself.
  const auto beside = testing::Open(*engine, problem.make(), options);
  ASSERT_FALSE(beside);
  EXPECT_EQ(beside.error().reason(), "LIMIT");
  const Problem large = testing::GaussianProblem(DType::kF32, {600'000}, 0.25, 1.5, 3, 3072);
  const auto stored = testing::Open(*engine, large.make(), {.may_window = true, .store = StoreOptions{}});
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().reason(), "LIMIT");
}

TEST(Resident, ArraysMakeRoomForJobs) {
  testing::Setup setup;
  setup.options.device_bytes = 2 << 20;
  setup.options.store.bytes = setup.options.store.bytes_per_identity = 1500 << 10;
  const auto engine = testing::MakeEngine(setup);
  const Bytes bytes = testing::RandomBytes(600'000, 5);
  const auto goes = testing::Put(*engine, bytes, testing::SpecOf({600'000}), {.evictable = true});
  const auto stays = testing::Put(*engine, bytes, testing::SpecOf({600'000}));
  ASSERT_TRUE(goes && stays);
  const Problem problem = testing::FineRmseProblem(1);                              // 0.4 MB
  const Problem larger = testing::RmseProblem(DType::kU8, {130 * 4096}, {}, 5, 1);  // 1.1 MB
  EXPECT_EQ(testing::RunJob(*engine, problem, {testing::Ascending(problem, 5000)}).value(), problem.expected);
  EXPECT_TRUE(engine->arrays().Stat(*goes, "anonymous")) << "there was room beside it";
  EXPECT_EQ(testing::RunJob(*engine, larger, {testing::Ascending(larger, 5000)}).value(), larger.expected);
  EXPECT_FALSE(engine->arrays().Stat(*goes, "anonymous"));
  EXPECT_EQ(engine->stats().arrays_evicted, 1U);
  EXPECT_EQ(testing::Get(*engine, *stays).value(), bytes);
}

}  // namespace
}  // namespace tilewire::engine
