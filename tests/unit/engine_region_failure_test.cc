// Jobs whose regions go away, change or are let go of while they run, and jobs that fail.
#include <gtest/gtest.h>

#include "tests/unit/engine_regions_testing.h"
#include "tests/unit/held_device.h"

namespace tilewire::engine {
namespace {

using testing::All;
using testing::Part;
using testing::Placed;
using testing::Problem;
using testing::SharedFile;

/// Devices slow enough for something to happen while a job copies.
testing::Setup Slow(bool staged) {
  testing::Setup setup;
  setup.staged = staged;
  setup.options.regions = testing::RegionsOn();
  setup.slow = SlowOptions{.copy_in = std::chrono::milliseconds(2), .copy_out = std::chrono::milliseconds(2)};
  return setup;
}

TEST(RegionJob, MemoryThatGoesAwayFailsTheJobAlone) {
  for (const bool staged : {true, false})
    for (const bool grown_again : {true, false})
      for (const bool result : {true, false}) {
        SCOPED_TRACE(std::to_string(staged) + std::to_string(grown_again) + std::to_string(result));
        testing::Setup setup = Slow(staged);
        const auto gate = std::make_shared<tilewire::testing::Gate>();
        setup.wrap = tilewire::testing::HeldBy(gate);
        const auto engine = testing::MakeEngine(setup);
        const Problem problem = testing::TransposeProblem(DType::kF32, {310, 549}, {1, 0}, 8);
        Placed placed(*engine, problem);
        SharedFile operand(problem.operands[0].size());  // apart, where the result is what goes
        operand.Write(0, problem.operands[0].data(), operand.bytes());
        const auto source = testing::Register(engine->regions(), All(operand));
        JobOptions options = placed.Options(*engine, 1, true);
        if (result) {
          options.regions = {Part(*engine, source->id, 0)};
        } else {
          options.result_region = {};
        }
        gate->Close(5);  // the other copies come after the cut, however long that takes
        auto job = testing::Open(*engine, problem.make(), options);
        placed.file().ResizeElsewhere(5000);
        gate->Open();
        ASSERT_TRUE(job) << job.error().ToString();
        if (grown_again && !result) {
          // Bytes that are there again are zeros: a wrong result, if any, and nothing worse.
          placed.file().ResizeElsewhere(placed.file().bytes());
          (void)testing::Collect(**job).has_value();
        } else {
          const auto output = testing::Collect(**job);
          ASSERT_FALSE(output);
          EXPECT_EQ(output.error().code(), Code::kFailedPrecondition) << output.error().ToString();
          EXPECT_EQ(output.error().reason(), "REGION_SHRUNK");
        }
        options = {};
        job = Fail(Status());
        EXPECT_TRUE(testing::BecomesIdle(*engine));
        const auto good = testing::RunJob(*engine, problem, {testing::Ascending(problem, 5000)});
        ASSERT_TRUE(good);
        EXPECT_EQ(*good, problem.expected);
      }
}

TEST(RegionJob, WhatChangesWhileItIsReadHarmsNobody) {
  testing::Setup setup = Slow(true);
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::RmseProblem(DType::kF32, {300, 1000}, {1}, 3);
  Placed placed(*engine, problem);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (size_t i = 0; !stop; i = (i + 4096) % placed.result_at())
      __atomic_store_n(reinterpret_cast<uint8_t*>(placed.file().data()) + i, static_cast<uint8_t>(i >> 3),
                       __ATOMIC_RELAXED);
  });
  for (int i = 0; i < 3; ++i) {
    const auto job = testing::Open(*engine, problem.make(), placed.Options(*engine, 3, false));
    ASSERT_TRUE(job);
    const auto output = testing::Collect(**job);
    ASSERT_TRUE(output);
    EXPECT_EQ(output->size(), problem.expected.size());
  }
  stop = true;
  writer.join();
}

TEST(RegionJob, CancelledAndFailedJobsLetGoOfTheirRegions) {
  testing::Setup setup = Slow(true);
  const auto gate = std::make_shared<tilewire::testing::Gate>();
  setup.wrap = tilewire::testing::HeldBy(gate);
  setup.faults = std::make_shared<Faults>();
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::TransposeProblem(DType::kF32, {310, 549}, {1, 0}, 8);
  for (const int way : {0, 1, 2, 3}) {
    Placed placed(*engine, problem);
    if (way == 1)
      setup.faults->FailNth(Submitted::kCopyIn, 3, Status(Code::kInternal, "INTERNAL_ERROR", "copy"));
    if (way == 2)
      setup.faults->FailNth(Submitted::kCopyOut, 2, Status(Code::kInternal, "INTERNAL_ERROR", "copy"));
    if (way == 0) gate->Close(5);  // it is not done before it is cancelled
    auto job = testing::Open(*engine, problem.make(), placed.Options(*engine, 1, true));
    EXPECT_TRUE(engine->regions().Unregister(placed.id(), "anonymous").ok()) << "while it is in use";
    if (way == 0 && job) (*job)->Fail(Status(Code::kCancelled, "CANCELLED", "gone"));
    gate->Open();
    ASSERT_TRUE(job);
    if (way < 3) {
      EXPECT_FALSE(testing::Collect(**job)) << way;
    } else {
      EXPECT_TRUE(testing::Collect(**job));
      EXPECT_EQ(std::memcmp(placed.file().data() + placed.result_at(), problem.expected.data(),
                            problem.expected.size()),
                0);
    }
    EXPECT_GT(engine->stats().region_bytes, 0U);
    job = Fail(Status());
    EXPECT_TRUE(testing::BecomesIdle(*engine));
    EXPECT_TRUE(testing::NoRegionsLeft(*engine)) << way;
  }
}

}  // namespace
}  // namespace tilewire::engine
