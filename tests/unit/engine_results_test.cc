// Operations with several results: each is told as an array of its own, however it leaves, and what lies
// between two of them goes nowhere.
#include <gtest/gtest.h>

#include "tests/unit/engine_extremes.h"
#include "tests/unit/engine_regions_testing.h"
#include "tests/unit/engine_window_testing.h"
#include "tests/unit/held_device.h"

namespace tilewire::engine {
namespace {

using testing::Bytes;
using testing::Part;
using testing::Problem;
using testing::SharedFile;

/// Every kind of memory and of scheduling that a job may meet.
std::vector<testing::Setup> ResultSetups() {
  std::vector<testing::Setup> setups = testing::SetupsOfEveryKind();
  setups.emplace_back().options.block_bytes = 64 << 10;  // larger than all results together
  for (auto& setup : setups) {
    setup.options.regions = testing::RegionsOn();
    setup.faults = std::make_shared<Faults>();
  }
  return setups;
}

std::vector<Problem> ExtremesProblems() {
  return {testing::BulkExtremes(1), testing::SmallExtremes(2), testing::ExtremesProblem(128, 32, 5, 3)};
}

TEST(Results, AreHandedOutOneAfterTheOther) {
  for (const auto& setup : ResultSetups()) {
    const auto engine = testing::MakeEngine(setup);
    for (const Problem& problem : ExtremesProblems())
      for (const bool resident : {false, true}) {
        JobOptions options;
        if (resident) options.residents = testing::PutOperands(*engine, problem);
        const int64_t copies = setup.faults->count(Submitted::kCopyOut);
        const auto job = testing::Open(*engine, problem.make(), options);
        ASSERT_TRUE(job) << job.error().ToString();
        const testing::Feeders feeders(*job, problem,
                                       {resident ? testing::Chunks() : testing::Ascending(problem, 5000)});
        const auto results = testing::CollectResults(**job);
        ASSERT_TRUE(results) << results.error().ToString();
        EXPECT_EQ(*results, problem.expected);
        EXPECT_EQ((*job)->timing().bytes_out, problem.expected.size()) << "no byte between results";
        // A copy a block, not a result.
        const int64_t area = problem.make()->result_bytes(), block = (*job)->block_bytes();
        EXPECT_LE(setup.faults->count(Submitted::kCopyOut) - copies, (area + block - 1) / block);
      }
    EXPECT_TRUE(testing::BecomesIdle(*engine));
  }
}

TEST(Results, AreSharedByStreams) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 12; ++round) {
    testing::Setup setup;
    setup.staged = round % 2 == 0;
    if (round % 3 == 0) setup.slow = SlowOptions{.jitter = std::chrono::microseconds(60), .seed = 3};
    const auto engine = testing::MakeEngine(setup);
    const Problem problem = testing::ExtremesProblem(1500 + round, 101, 16, random());
    const auto job = *testing::Open(*engine, problem.make(), {.streams = 3});
    const auto plan = testing::Scattered(problem, job->block_bytes(), 3, random);
    for (int i = 1; i < 3; ++i) ASSERT_EQ(job->Join().value(), i);
    Bytes all(problem.expected.size());
    std::vector<std::thread> streams;
    for (int i = 0; i < 3; ++i)
      streams.emplace_back([&, i] {
        std::thread taker([&] {
          const Status taken = testing::TakeResults(*job, i, &all);
          EXPECT_TRUE(taken.ok()) << taken.ToString();
        });
        Intake intake(job, i);
        for (const testing::Chunk& chunk : plan[static_cast<size_t>(i)])
          EXPECT_TRUE(testing::Send(*job, intake, chunk, problem.operands[0]).ok());
        EXPECT_TRUE(intake.HalfClosed().ok());
        job->InputEnded(i);
        taker.join();
        if (i > 0) job->StreamDone(i);  // the first is told of the end when the others are done
      });
    for (auto& stream : streams) stream.join();
    EXPECT_EQ(all, problem.expected) << round;
  }
}

/// Expects the results of `problem` in `area`, and all else there as it was.
void ExpectResultsIn(const std::byte* area, const Problem& problem, std::byte untouched) {
  const auto operation = problem.make();
  Bytes expected(static_cast<size_t>(operation->result_bytes()) + 64, untouched);
  for (size_t i = 0; i < operation->results().size(); ++i) {
    const Bytes result = testing::ResultOf(*operation, problem.expected, i);
    std::copy(result.begin(), result.end(), expected.begin() + operation->result_offset(i));
  }
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), area));
}

TEST(Results, GoIntoARegionAndNothingBetweenThem) {
  for (const auto& setup : ResultSetups()) {
    const auto engine = testing::MakeEngine(setup);
    for (const Problem& problem : ExtremesProblems()) {
      const auto bytes = static_cast<size_t>(problem.make()->result_bytes());
      SharedFile file(bytes + 100);
      std::fill_n(file.data(), file.bytes(), std::byte{0x5a});
      const auto region = testing::Register(engine->regions(), testing::All(file));
      ASSERT_TRUE(region) << region.error().ToString();
      JobOptions options{.result_region = Part(*engine, region->id, 13)};
      {
        const auto job = testing::Open(*engine, problem.make(), options);
        ASSERT_TRUE(job) << job.error().ToString();
        const testing::Feeders feeders(*job, problem, {testing::Ascending(problem, 5000)});
        ASSERT_TRUE(testing::CollectResults(**job));
        EXPECT_EQ((*job)->timing().region_bytes_out, problem.expected.size());
        EXPECT_EQ((*job)->timing().bytes_out, 0U);
      }
      ExpectResultsIn(file.data() + 13, problem, std::byte{0x5a});
      options.result_region = Part(*engine, region->id, 101);
      const auto refused = testing::Open(*engine, problem.make(), options);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().detail()->field, "place.offset");
      EXPECT_EQ(refused.error().detail()->allowed,
                "0 to 100: the results, each at a multiple of 256 bytes from there, take " +
                    std::to_string(bytes) + " bytes, the region " + std::to_string(bytes + 100));
    }
  }
}

TEST(Results, AreWrittenByKernelsInARegionOfTheDevice) {
  tilewire::testing::DeviceExports exports;
  EngineOptions options = testing::Setup().options;
  options.regions = testing::DeviceOn();
  const auto engine = Engine::Make(std::make_unique<tilewire::testing::ExportsDevice>(
                                       MakeStaged(OpenCpuDevice(2), false), &exports),
                                   options)
                          .value();
  for (const Problem& problem : ExtremesProblems()) {
    const tilewire::testing::ExportedMemory memory(&exports,
                                                   static_cast<size_t>(problem.make()->result_bytes()) + 512);
    std::fill_n(memory.data(), memory.bytes(), std::byte{0x5a});
    const auto region = testing::Register(engine->regions(), testing::All(memory));
    ASSERT_TRUE(region) << region.error().ToString();
    const auto job =
        testing::Open(*engine, problem.make(), {.result_region = Part(*engine, region->id, 256)});
    ASSERT_TRUE(job) << job.error().ToString();
    const testing::Feeders feeders(*job, problem, {testing::Ascending(problem, 5000)});
    ASSERT_TRUE(testing::CollectResults(**job));
    ExpectResultsIn(memory.data() + 256, problem, std::byte{0x5a});
  }
}

TEST(Results, PassThroughAWindow) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    std::mt19937_64 random(seed);
    const Problem problem = testing::BulkExtremes(seed);
    testing::Setup setup;
    setup.staged = seed % 2 == 0;
    setup.options.device_bytes = 512 << 10;  // the operand has 637 KB
    const auto engine = testing::MakeEngine(setup);
    const auto job = testing::OpenWindowed(*engine, problem, 1);
    ASSERT_TRUE(job) << job.error().ToString();
    EXPECT_GT((*job)->window_bytes(), 0);
    const testing::Feeders feeders(*job, problem, testing::WithinWindow(problem, **job, 1, random));
    const auto results = testing::CollectResults(**job);
    ASSERT_TRUE(results) << results.error().ToString();
    EXPECT_EQ(*results, problem.expected);
  }
}

TEST(Results, FailingAtAnyMomentGivesEverythingBack) {
  std::mt19937_64 random(5);
  testing::Setup setup;
  setup.slow = SlowOptions{.jitter = std::chrono::microseconds(60), .seed = 3};
  const auto gate = std::make_shared<tilewire::testing::Gate>();
  setup.wrap = tilewire::testing::HeldBy(gate);
  setup.options.regions = testing::RegionsOn();
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::ExtremesProblem(1403, 101, 82, 3);
  SharedFile file(problem.expected.size() + 1000);
  const auto region = testing::Register(engine->regions(), testing::All(file));
  ASSERT_TRUE(region);
  for (int round = 0; round < 60; ++round) {
    JobOptions options;
    if (round % 3 == 1) options.store.emplace();
    if (round % 3 == 2) options.result_region = Part(*engine, region->id, 0);
    const auto job = *testing::Open(*engine, problem.make(), options);
    options = {};
    const tilewire::testing::AtSubmission killer(gate, static_cast<int64_t>(random() % 140), [job] {
      job->Fail(Status(Code::kCancelled, "CANCELLED", "told to"));
    });
    const testing::Feeders feeders(job, problem, {testing::Ascending(problem, 5000)});
    const auto results = testing::CollectResults(*job);
    if (results && round % 3 == 0) {
      EXPECT_EQ(*results, problem.expected);
    }
    if (round % 3 != 1) continue;
    EXPECT_EQ(job->stored_id(0).empty(), !results);
    EXPECT_EQ(job->stored_id(1).empty(), !results);
    for (size_t i = 0; results && i < 2; ++i)
      EXPECT_TRUE(engine->arrays().Delete(job->stored_id(i), "anonymous").ok());
  }
  EXPECT_TRUE(testing::BecomesIdle(*engine));
  EXPECT_EQ(engine->stats().arrays_stored, 0U);
}

}  // namespace
}  // namespace tilewire::engine
