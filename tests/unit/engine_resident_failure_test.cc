// However a job with resident arrays ends, its arrays and gauges are as before.
#include <gtest/gtest.h>

#include "tests/unit/engine_arrays_testing.h"
#include "tests/unit/held_device.h"

namespace tilewire::engine {
namespace {

using testing::Bytes;
using testing::Problem;

const Status kHiccup(Code::kInternal, "INTERNAL_ERROR", "told to fail");
const ArraySpec kSpec = testing::SpecOf({200'000});

TEST(ResidentFailure, FaultsLeaveNoArrayAndNoLease) {
  for (const bool reach : {false, true}) {
    testing::Setup setup;
    setup.reach_pinned = reach;
    setup.faults = std::make_shared<Faults>();
    const auto engine = testing::MakeEngine(setup);
    const Bytes bytes = testing::RandomBytes(200'000, 1);
    setup.faults->FailNth(Submitted::kCopyIn, 7, kHiccup);
    EXPECT_EQ(testing::Put(*engine, bytes, kSpec).error().reason(), "INTERNAL_ERROR");
    EXPECT_TRUE(testing::BecomesIdle(*engine));

    const auto id = testing::Put(*engine, bytes, kSpec);
    ASSERT_TRUE(id);
    setup.faults->FailNth(Submitted::kCopyOut, 5, kHiccup);
    EXPECT_EQ(testing::Get(*engine, *id).error().reason(), "INTERNAL_ERROR");
    EXPECT_TRUE(testing::OnlyArraysLeft(*engine));

    setup.faults->FailNth(Submitted::kLaunch, 1, kHiccup);
    JobOptions options{.store = StoreOptions{}};
    options.residents = {*engine->arrays().Use(*id, "anonymous", "array")};
    const auto plan = *transpose::Plan::Make(testing::SpecOf({400, 500}), {});
    auto job = testing::Open(*engine, transpose::MakeProblem(plan), options);
    options.residents.clear();
    ASSERT_TRUE(job);
    EXPECT_EQ(testing::Collect(**job).error().reason(), "INTERNAL_ERROR");
    EXPECT_EQ((*job)->stored_id(), "");
    job = Fail(kHiccup);
    EXPECT_TRUE(testing::OnlyArraysLeft(*engine));
    EXPECT_EQ(engine->stats().arrays_stored, 1U);
    EXPECT_EQ(testing::Get(*engine, *id).value(), bytes);
    EXPECT_EQ(engine->arrays().List("anonymous", 0, 9).held_bytes,
              static_cast<int64_t>(engine->stats().array_bytes));
  }
}

TEST(ResidentFailure, OutOfMemoryIsBusyAndGivesTheRoomBack) {
  testing::Setup setup;
  setup.shortage = std::make_shared<Shortage>();
  const auto engine = testing::MakeEngine(setup);
  const Bytes bytes = testing::RandomBytes(200'000, 1);
  setup.shortage->FailNthDevice(1);
  EXPECT_EQ(testing::Put(*engine, bytes, kSpec).error().reason(), "BUSY");
  setup.shortage->FailNthPinned(2);
  EXPECT_EQ(testing::Put(*engine, bytes, kSpec).error().reason(), "BUSY");
  EXPECT_TRUE(testing::BecomesIdle(*engine));
  EXPECT_EQ(engine->arrays().List("anonymous", 0, 9).held_bytes, 0);
  EXPECT_EQ(setup.shortage->leased_device_bytes(), 0);
}

TEST(ResidentFailure, AJobThatFailsBeforeItsEndStoresNothing) {
  const auto engine = testing::MakeEngine({});
  JobOptions options{.store = StoreOptions{.key = "k"}};
  {
    const auto job = *testing::Open(*engine, MakePass(kSpec, "put"), options);
    Intake intake(job);
    const Bytes bytes = testing::RandomBytes(200'000, 1);
    ASSERT_TRUE(testing::Send(*job, intake, {0, 0, 200'000}, bytes).ok());
    EXPECT_EQ(engine->arrays().List("anonymous", 0, 9).held_bytes,
              static_cast<int64_t>(engine->stats().device_bytes_in_use))
        << "reserved";
    job->Fail(kHiccup);  // every byte came, but the client left
    EXPECT_FALSE(testing::Collect(*job));
  }
  EXPECT_TRUE(testing::BecomesIdle(*engine));
  EXPECT_EQ(engine->arrays().List("anonymous", 0, 9).held_bytes, 0);
  EXPECT_EQ(engine->stats().arrays_stored, 0U);
}

TEST(ResidentFailure, ADeadDeviceForgetsAll) {
  testing::Setup setup;
  setup.faults = std::make_shared<Faults>();
  const auto engine = testing::MakeEngine(setup);
  const Bytes bytes = testing::RandomBytes(200'000, 1);
  const auto id = testing::Put(*engine, bytes, kSpec);
  ASSERT_TRUE(id);
  setup.faults->FailNth(Submitted::kCopyOut, 1, Status(Code::kInternal, "DEVICE_FAILED", "told to die"),
                        true);
  EXPECT_FALSE(testing::Get(*engine, *id));
  EXPECT_TRUE(testing::BecomesIdle(*engine));
  EXPECT_EQ(engine->arrays().Stat(*id, "anonymous").error().reason(), "ARRAY");
  EXPECT_EQ(testing::Put(*engine, bytes, kSpec).error().reason(), "DEVICE_FAILED");
}

TEST(ResidentFailure, FailingAtAnyMomentLeavesTheArrays) {
  std::mt19937_64 random(5);
  testing::Setup setup;
  setup.slow = SlowOptions{.jitter = std::chrono::microseconds(60), .seed = 3};
  const auto gate = std::make_shared<tilewire::testing::Gate>();
  setup.wrap = tilewire::testing::HeldBy(gate);
  ManualTime time;
  setup.options.time = &time;
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::FineRmseProblem(3);
  const auto id = testing::Put(*engine, problem.operands[1], problem.make()->operands()[1]);
  ASSERT_TRUE(id);
  for (int round = 0; round < 60; ++round) {
    JobOptions options;
    if (round % 2 == 0) options.store = StoreOptions{.seconds = 60};
    options.residents = {nullptr, *engine->arrays().Use(*id, "anonymous", "array")};
    const auto job = *testing::Open(*engine, problem.make(), options);
    options.residents.clear();
    const tilewire::testing::AtSubmission killer(gate, static_cast<int64_t>(random() % 100),
                                                 [job] { job->Fail(kHiccup); });
    time.Advance(std::chrono::seconds(random() % 40));  // some results go while others come
    const auto output = testing::Finish(job, problem, {false, true});
    if (output && round % 2 == 1) {
      EXPECT_EQ(*output, problem.expected);
    }
  }
  time.Advance(std::chrono::seconds(60));
  EXPECT_TRUE(testing::Becomes([&] { return engine->stats().arrays_stored == 1; }));
  EXPECT_TRUE(testing::OnlyArraysLeft(*engine));
  EXPECT_TRUE(engine->arrays().Delete(*id, "anonymous").ok());
  EXPECT_TRUE(testing::BecomesIdle(*engine));
}

}  // namespace
}  // namespace tilewire::engine
