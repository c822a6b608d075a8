// Jobs that are opened before they have memory: what they hold until their first bytes land, and after.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/engine_testing.h"
#include "tests/unit/engine_time_testing.h"
#include "tests/unit/engine_window_testing.h"

namespace tilewire::engine {
namespace {

using std::chrono::seconds;
using testing::Bytes;
using testing::Problem;

JobOptions LandingOptions(int streams = 1) {
  return {.streams = streams, .may_window = true, .lands = true};
}
std::shared_ptr<Job> OpenLanding(Engine& engine, const Problem& problem,
                                 const JobOptions& options = LandingOptions()) {
  auto job = testing::Open(engine, problem.make(), options);
  EXPECT_TRUE(job) << job.error().ToString();
  return job ? *job : nullptr;
}
/// One job of a matrix of 600 KiB at a time, and little beside it.
testing::Setup OneAtATime() {
  testing::Setup setup;
  setup.options.device_bytes = 1500 << 10;
  return setup;
}
Problem Large(uint64_t seed = 1) {
  return testing::TransposeProblem(DType::kU8, {600, 1000}, {}, seed);
}

TEST(Landing, OpenedJobsHoldNothing) {
  for (testing::Setup& setup : testing::SetupsOfEveryKind()) {
    setup.options.device_bytes = 1500 << 10;
    const auto engine = testing::MakeEngine(setup);
    std::vector<std::shared_ptr<Job>> silent;
    for (uint64_t i = 0; i < 64; ++i) silent.push_back(OpenLanding(*engine, Large()));
    EngineStats stats = engine->stats();
    EXPECT_EQ(stats.device_bytes_in_use, 0U);
    EXPECT_EQ(stats.pinned_bytes_in_use, 0U);
    EXPECT_EQ(stats.jobs_in_flight, 0U);
    EXPECT_EQ(stats.jobs_queued, 0U);
    EXPECT_EQ(stats.jobs_open, 64U);
    EXPECT_FALSE(engine->AnybodyWaits());
    EXPECT_GT(silent.front()->block_bytes(), 0) << "all is decided that its client is told";
    EXPECT_FALSE(silent.front()->has_memory());

    const Problem problem = Large(7);
    EXPECT_EQ(testing::RunJob(*engine, problem, {testing::Ascending(problem, 9'999)}).value(),
              problem.expected);
    silent.clear();
    EXPECT_TRUE(testing::BecomesIdle(*engine));
    EXPECT_EQ(engine->stats().jobs_open, 0U);
  }
}

TEST(Landing, GivesTheSameBitsInEverySetup) {
  std::mt19937_64 random(15);
  for (const testing::Setup& setup : testing::SetupsOfEveryKind()) {
    const auto engine = testing::MakeEngine(setup);
    for (const Problem& problem : {testing::FineRmseProblem(1), testing::FineTransposeProblem(2),
                                   testing::RmseProblem(DType::kF32, {100}, {}, 3),
                                   testing::TransposeProblem(DType::kU16, {77, 91}, {}, 4),
                                   testing::GaussianProblem(DType::kF32, {50'000}, 0.5, 2, 5, 3'000)}) {
      for (const int streams : {1, 3}) {
        const auto job = OpenLanding(*engine, problem, LandingOptions(streams));
        Bytes out(problem.expected.size());
        std::vector<std::thread> threads;
        const auto plan =
            testing::Scattered(problem, job->block_bytes(), static_cast<size_t>(streams), random);
        for (int i = 1; i < streams; ++i) EXPECT_EQ(job->Join().value(), i) << "before anything has landed";
        for (int i = 0; i < streams; ++i)
          threads.emplace_back([&, i] {
            const Status status = testing::Carry(job, i, problem, plan[static_cast<size_t>(i)], &out);
            EXPECT_TRUE(status.ok()) << status.ToString();
          });
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(out, problem.expected);
        EXPECT_GE(job->timing().of(Stage::kQueue), 0);
      }
    }
    EXPECT_TRUE(testing::BecomesIdle(*engine));
  }
}

TEST(Landing, WindowedJobsGetTheirRingsThen) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 4; ++i) {
    const Problem problem = testing::LongProblem(random);
    testing::Setup setup;
    setup.staged = i % 2 == 0;
    setup.options.device_bytes = testing::BytesOf(problem) * 2 / 3;
    const auto engine = testing::MakeEngine(setup);
    const auto job = OpenLanding(*engine, problem, LandingOptions(2));
    ASSERT_GT(job->window_bytes(), 0);
    EXPECT_EQ(engine->stats().device_bytes_in_use, 0U);
    EXPECT_EQ(engine->stats().jobs_windowed, 0U);
    const testing::Feeders feeders(job, problem, testing::WithinWindow(problem, *job, 1, random));
    EXPECT_EQ(testing::Collect(*job).value(), problem.expected);
    EXPECT_EQ(engine->stats().jobs_windowed, 1U);
  }
}

TEST(Landing, WhatLandsWaitsForMemoryAndGoesOn) {
  for (const bool staged : {true, false}) {
    testing::Setup setup = OneAtATime();
    setup.staged = staged;
    const auto engine = testing::MakeEngine(setup);
    const Problem problem = Large();
    auto running = *testing::Open(*engine, problem.make());
    const auto job = OpenLanding(*engine, problem, LandingOptions(2));
    ASSERT_EQ(job->Join().value(), 1);
    EXPECT_FALSE(job->awaits_memory());
    Bytes out(problem.expected.size());
    std::vector<testing::Chunks> plan(2);  // every second block
    for (int64_t at = 0; at < 600'000; at += job->block_bytes())
      plan[static_cast<size_t>(at / job->block_bytes() % 2)].push_back(
          {0, at, std::min(job->block_bytes(), 600'000 - at)});
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i)
      threads.emplace_back(
          [&, i] { EXPECT_TRUE(testing::Carry(job, i, problem, plan[static_cast<size_t>(i)], &out).ok()); });
    EXPECT_TRUE(testing::Becomes([&] { return engine->stats().jobs_queued == 1; }));
    EXPECT_TRUE(job->awaits_memory());
    EXPECT_TRUE(engine->AnybodyWaits());
    EXPECT_EQ(engine->stats().jobs_open, 0U);
    EXPECT_EQ(job->moved(), 0U);
    running.reset();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(out, problem.expected);
    EXPECT_FALSE(job->awaits_memory());
    EXPECT_GT(job->timing().of(Stage::kQueue), 0);
  }
}

/// Sends the first chunk of a job on a thread of its own, and how that ended.
class Lands {
 public:
  Lands(const std::shared_ptr<Job>& job, const Problem& problem)
      : sent_(std::async(std::launch::async, [job, &problem] {
          Intake intake(job);
          return testing::Send(*job, intake, {0, 0, 1000}, problem.operands[0]);
        })) {}
  Status Ended() { return sent_.get(); }

 private:
  std::future<Status> sent_;
};

TEST(Landing, TheWaitEndsWithTheQueueBoundTheDeadlineOrTheJob) {
  ManualTime time;
  testing::Setup setup = OneAtATime();
  setup.options.time = &time;
  setup.options.queue_seconds = 10;
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = Large();
  auto running = *testing::Open(*engine, problem.make());
  const uint64_t bytes = engine->stats().device_bytes_in_use;
  const auto waits = [&] { return engine->stats().jobs_queued == 1; };

  auto bounded = OpenLanding(*engine, problem);
  testing::Pass(time, engine->timer(), seconds(100));
  EXPECT_TRUE(bounded->status().ok()) << "its client may take its time, as far as the engine cares";
  Lands busy(bounded, problem);
  ASSERT_TRUE(testing::Becomes(waits));
  testing::Pass(time, engine->timer(), seconds(10));
  EXPECT_EQ(busy.Ended().reason(), "BUSY");
  EXPECT_EQ(bounded->status().detail()->retry_after_ms, 250);
  EXPECT_FALSE(bounded->awaits_memory());

  JobOptions options = LandingOptions();
  options.deadline = time.Now() + seconds(5);
  const auto late = OpenLanding(*engine, problem, options);
  const auto silent = OpenLanding(*engine, problem, options);
  Lands too_late(late, problem);
  ASSERT_TRUE(testing::Becomes(waits));
  testing::Pass(time, engine->timer(), seconds(5));
  EXPECT_EQ(too_late.Ended().reason(), "DEADLINE");
  EXPECT_EQ(silent->status().reason(), "DEADLINE");

  const auto cancelled = OpenLanding(*engine, problem);
  Lands gone(cancelled, problem);
  ASSERT_TRUE(testing::Becomes(waits));
  cancelled->StreamLost(0, Status(Code::kCancelled, "CANCELLED", ""));
  EXPECT_EQ(gone.Ended().code(), Code::kCancelled);

  EXPECT_EQ(engine->stats().jobs_queued, 0U);
  EXPECT_EQ(engine->stats().jobs_open, 0U);
  EXPECT_EQ(engine->stats().device_bytes_in_use, bytes) << "of the one that runs";
  running.reset();
  EXPECT_TRUE(testing::BecomesIdle(*engine));
}

TEST(Landing, AJobThatFailedMeanwhileTakesNoMemory) {
  const auto engine = testing::MakeEngine(OneAtATime());
  const Problem problem = Large();
  const auto job = OpenLanding(*engine, problem);
  job->Fail(Status(Code::kCancelled, "GONE", ""));
  EXPECT_EQ(engine->stats().jobs_open, 0U);
  EXPECT_EQ(testing::Collect(*job).error().reason(), "GONE");
  EXPECT_FALSE(job->Land());
  EXPECT_EQ(engine->stats().device_bytes_in_use, 0U);
  EXPECT_EQ(engine->stats().jobs_admitted, 0U);
}

TEST(Landing, WhereNothingIsSentMemoryComesAtOnce) {
  const auto engine = testing::MakeEngine({});
  const Problem problem = testing::TransposeProblem(DType::kU8, {60, 100}, {}, 1);
  JobOptions put = LandingOptions();
  put.store.emplace();
  const auto stored = OpenLanding(*engine, problem, put);
  EXPECT_EQ(engine->stats().device_bytes_in_use, 0U);
  {
    const testing::Feeders feeders(stored, problem, {testing::Ascending(problem, 999)});
    EXPECT_TRUE(testing::Collect(*stored));
  }
  JobOptions resident = LandingOptions();
  resident.residents = {engine->arrays().Use(stored->stored_id(), "anonymous", "array").value()};
  const auto job = testing::Open(*engine, MakePass(resident.residents[0]->spec(), "get"), resident);
  ASSERT_TRUE(job);
  EXPECT_TRUE((*job)->has_memory());
  EXPECT_EQ(testing::Collect(**job).value(), problem.expected);
}

TEST(Landing, InputThatEndsBeforeItBeganIsMissing) {
  const auto engine = testing::MakeEngine({});
  const Problem problem = Large();
  const auto job = OpenLanding(*engine, problem);
  job->InputEnded();
  EXPECT_EQ(testing::Collect(*job).error().reason(), "BYTES_MISSING");
  EXPECT_EQ(engine->stats().jobs_open, 0U);
}

TEST(Landing, MemoryThatCannotBeLeasedAfterAllEndsTheJob) {
  testing::Setup setup;
  setup.shortage = std::make_shared<Shortage>();
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = Large();
  const auto job = OpenLanding(*engine, problem);
  setup.shortage->FailNthDevice(1);
  EXPECT_FALSE(job->Land());
  EXPECT_EQ(job->status().reason(), "BUSY");
  EXPECT_TRUE(testing::BecomesIdle(*engine));
}

TEST(Landing, ADeadDeviceReachesThoseThatAreOpen) {
  const Status broken(Code::kInternal, "DEVICE_FAILED", "the device is gone");
  testing::Setup setup;
  setup.faults = std::make_shared<Faults>();
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = Large();
  const auto silent = OpenLanding(*engine, problem), job = OpenLanding(*engine, problem);
  setup.faults->FailDevice(broken);
  EXPECT_FALSE(job->Land());
  for (const auto& one : {silent, job}) EXPECT_EQ(one->status().code(), Code::kUnavailable);
  EXPECT_EQ(engine->stats().jobs_open, 0U);
}

}  // namespace
}  // namespace tilewire::engine
