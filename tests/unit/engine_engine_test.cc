// Budgets, device failure, deadlines and the end of an engine.
#include "server/engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "tests/unit/engine_testing.h"
#include "tests/unit/engine_time_testing.h"
#include "tests/unit/held_device.h"

namespace tilewire::engine {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::Problem;
using tilewire::testing::Gate;
using tilewire::testing::HeldBy;

const Status kBroken(Code::kInternal, "DEVICE_FAILED", "the device is gone");

TEST(Engine, DerivesBudgets) {
  for (const bool staged : {true, false}) {
    auto device = OpenCpuDevice(1);
    device->SetDeviceBudget(100 << 20);  // so that so much is free
    if (staged) device = MakeStaged(std::move(device));
    const auto engine = Engine::Make(std::move(device), {.lanes = 2, .pinned_bytes = 5 << 20});
    ASSERT_TRUE(engine);
    EXPECT_EQ((*engine)->options().device_bytes, 80 << 20);
    EXPECT_EQ((*engine)->stats().device_bytes, 80U << 20);
    EXPECT_EQ((*engine)->stats().pinned_bytes, staged ? 5U << 20 : 0U);
  }
}

TEST(Engine, RefusesWhatIsLargerThanAWholeBudget) {
  testing::Setup setup;
  setup.options.device_bytes = 1 << 20;
  const Problem large = testing::TransposeProblem(DType::kU8, {600, 1000}, {}, 1);
  const auto device = testing::Open(*testing::MakeEngine(setup), large.make());
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().reason(), "LIMIT");
  setup.options.device_bytes = 64 << 20;
  setup.options.pinned_bytes = 20'000;  // six blocks of 4 KiB are more
  const auto pinned = testing::Open(*testing::MakeEngine(setup), large.make());
  ASSERT_FALSE(pinned);
  EXPECT_EQ(pinned.error().reason(), "LIMIT");
  setup.staged = false;  // no staging needed
  EXPECT_TRUE(testing::Open(*testing::MakeEngine(setup), large.make()));
}

TEST(Engine, CannotBeMadeOnADeadDevice) {
  const auto faults = std::make_shared<Faults>();
  faults->FailDevice(kBroken);
  const auto engine = Engine::Make(MakeFaulty(OpenCpuDevice(1), faults), {.device_bytes = 1 << 20});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().reason(), "DEVICE_FAILED");
}

TEST(Engine, ReservesExactlyWhatItLeases) {
  testing::Setup setup;
  setup.shortage = std::make_shared<Shortage>();
  const auto engine = testing::MakeEngine(setup);
  for (const Problem& problem : {testing::FineRmseProblem(1), testing::FineTransposeProblem(1),
                                 testing::RmseProblem(DType::kF32, {100}, {}, 1)}) {
    const auto job = testing::Open(*engine, problem.make());
    ASSERT_TRUE(job);
    const auto leased = static_cast<uint64_t>(setup.shortage->leased_device_bytes());
    EXPECT_GE(engine->stats().device_bytes_in_use, leased);
    EXPECT_LE(engine->stats().device_bytes_in_use, leased + leased / 15 + 4 * 512);  // rounded up
  }
  EXPECT_TRUE(testing::BecomesIdle(*engine));
}

/// Records what the failure handler hears.
struct Handler {
  std::atomic<int> calls{0};
  Status status;
  void On(Engine& engine) {
    engine.SetFailureHandler([this](const Status& why) {
      status = why;
      ++calls;
    });
  }
};

TEST(Engine, DeviceFailureReachesEveryJobAndTheHandlerOnce) {
  testing::Setup setup;
  setup.options.device_bytes = 1400 << 10;  // room for three of the jobs below
  setup.faults = std::make_shared<Faults>();
  auto engine = testing::MakeEngine(setup);
  Handler handler;
  handler.On(*engine);
  const Problem problem = testing::FineRmseProblem(1);
  const auto open = [&] { return *testing::Open(*engine, problem.make()); };
  auto launched = open(), hit = open(), idle = open();
  {
    Intake intake(launched);  // one block is copied, no more
    ASSERT_TRUE(testing::Send(*launched, intake, {0, 0, 4096}, problem.operands[0]).ok());
  }
  ASSERT_TRUE(testing::Becomes([&] { return launched->timing().of(Stage::kH2D) >= 0; }));
  std::promise<Status> queued;
  engine->Open(problem.make(), {}, [&](auto job) { queued.set_value(job ? Status() : job.error()); });
  ASSERT_EQ(engine->stats().jobs_queued, 1U);

  setup.faults->FailNth(Submitted::kLaunch, 5, kBroken, /*device_fails=*/true);
  {
    const testing::Feeders feeders(hit, problem, {testing::Ascending(problem, 50'000)});
    EXPECT_EQ(testing::Collect(*hit).error().code(), Code::kInternal);
  }
  EXPECT_EQ(testing::Collect(*launched).error().code(), Code::kInternal);
  EXPECT_EQ(testing::Collect(*launched).error().reason(), "DEVICE_FAILED");
  EXPECT_EQ(testing::Collect(*idle).error().code(), Code::kUnavailable);
  EXPECT_EQ(testing::Collect(*idle).error().reason(), "DEVICE_FAILED");
  EXPECT_EQ(queued.get_future().get().code(), Code::kUnavailable);
  const auto later = testing::Open(*engine, problem.make());
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code(), Code::kUnavailable);
  EXPECT_TRUE(testing::Becomes([&] { return handler.calls == 1; }));
  EXPECT_EQ(handler.status.reason(), "DEVICE_FAILED");
  EXPECT_TRUE(engine->stats().device_failed);
  launched.reset();
  hit.reset();
  idle.reset();
  engine.reset();  // with every thread that might tell it again
  EXPECT_EQ(handler.calls, 1);
}

TEST(Engine, AnIdleEngineNoticesADeadDeviceAtTheNextOpen) {
  testing::Setup setup;
  setup.faults = std::make_shared<Faults>();
  const auto engine = testing::MakeEngine(setup);
  Handler handler;
  handler.On(*engine);
  setup.faults->FailDevice(kBroken);
  for (int i = 0; i < 2; ++i) {
    const auto job = testing::Open(*engine, testing::FineRmseProblem(1).make());
    ASSERT_FALSE(job);
    EXPECT_EQ(job.error().code(), Code::kUnavailable);
    EXPECT_EQ(job.error().reason(), "DEVICE_FAILED");
  }
  EXPECT_EQ(handler.calls, 1);
  EXPECT_TRUE(engine->stats().device_failed);
  EXPECT_TRUE(testing::BecomesIdle(*engine));
}

TEST(Engine, ADeadlineOnTheDeviceEndsTheJobAndFreesItWhenTheDeviceIsDone) {
  ManualTime time;
  const auto gate = std::make_shared<Gate>();
  testing::Setup setup;
  setup.options.time = &time;
  setup.wrap = HeldBy(gate);
  setup.faults = std::make_shared<Faults>();
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::FineRmseProblem(1);
  auto job = *testing::Open(*engine, problem.make(), {.deadline = time.Now() + hours(1)});
  constexpr int64_t kBefore = 96 + 10;  // copies, and some of the kernels
  gate->Close(kBefore);                 // then the device stands still
  {
    const testing::Feeders feeders(job, problem, {testing::Ascending(problem, 200'000)});
    ASSERT_TRUE(testing::Becomes([&] { return gate->came() > kBefore; }));
    testing::Pass(time, engine->timer(), hours(1) - std::chrono::nanoseconds(1));
    EXPECT_TRUE(job->status().ok());
    testing::Pass(time, engine->timer(), std::chrono::nanoseconds(1));
    const auto output = testing::Collect(*job);
    ASSERT_FALSE(output);
    EXPECT_EQ(output.error().code(), Code::kDeadlineExceeded);
    EXPECT_EQ(output.error().reason(), "DEADLINE");
  }
  job.reset();
  EXPECT_EQ(engine->stats().jobs_in_flight, 1U);
  gate->Open();
  EXPECT_TRUE(testing::BecomesIdle(*engine));
  EXPECT_LE(setup.faults->count(Submitted::kLaunch), 48);
}

TEST(Engine, AQueuedJobWhoseDeadlinePassesOrThatIsCancelledNeverLaunches) {
  testing::Setup setup;
  ManualTime time;
  setup.options.time = &time;
  setup.options.device_bytes = 800 << 10;  // one at a time
  setup.faults = std::make_shared<Faults>();
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::FineRmseProblem(1);
  auto running = *testing::Open(*engine, problem.make());
  Status why;
  const auto told = [&why](auto job) { why = job ? Status() : job.error(); };
  EXPECT_NE(engine->Open(problem.make(), {.deadline = time.Now() + milliseconds(3)}, told), 0U);
  testing::Pass(time, engine->timer(), milliseconds(2));
  EXPECT_TRUE(why.ok());
  testing::Pass(time, engine->timer(), milliseconds(1));
  EXPECT_EQ(why.code(), Code::kDeadlineExceeded);
  const auto id = engine->Open(problem.make(), {}, told);
  EXPECT_NE(id, 0U);
  engine->CancelOpen(id, Status(Code::kCancelled, "GONE", ""));
  EXPECT_EQ(why.reason(), "GONE");
  running.reset();
  EXPECT_TRUE(testing::BecomesIdle(*engine));
  EXPECT_EQ(setup.faults->count(Submitted::kLaunch) + setup.faults->count(Submitted::kCopyIn), 0);
}

TEST(Engine, ClosedRefusesNewJobsAndFinishesRunningOnes) {
  testing::Setup setup;
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::FineRmseProblem(1);
  const auto running = *testing::Open(*engine, problem.make());
  engine->Close(Status(Code::kUnavailable, "DRAINING", ""));
  EXPECT_EQ(testing::Open(*engine, problem.make()).error().reason(), "DRAINING");
  const testing::Feeders feeders(running, problem, {testing::Ascending(problem, 9'999)});
  EXPECT_EQ(testing::Collect(*running).value(), problem.expected);
}

TEST(Engine, DropSoonDropsElsewhere) {
  testing::Setup setup;
  const auto engine = testing::MakeEngine(setup);
  std::promise<std::thread::id> dropped;
  engine->DropSoon(std::shared_ptr<const void>(
      nullptr, [&dropped](const void*) { dropped.set_value(std::this_thread::get_id()); }));
  EXPECT_NE(dropped.get_future().get(), std::this_thread::get_id());
}

TEST(Engine, WhatWasToBeDroppedSoonEndsBeforeTheEngine) {
  testing::Setup setup;
  auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::FineTransposeProblem(1);
  auto job = *testing::Open(*engine, problem.make());
  { const testing::Feeders feeders(job, problem, {testing::Ascending(problem, 50'000)}); }
  auto piece = **testing::Next(*job);
  const std::weak_ptr<Job> weak = job;
  std::promise<void> gate, reached;
  engine->DropSoon(std::shared_ptr<const void>(nullptr, [&](const void*) {
    reached.set_value();
    gate.get_future().wait();
  }));
  reached.get_future().wait();
  engine->DropSoon(std::move(job));
  engine->DropSoon(std::move(piece.hold));  // starts another copy as it goes
  piece = {};
  std::thread opener([&gate] { gate.set_value(); });  // before the engine begins to end, or while it waits
  engine.reset();
  opener.join();
  EXPECT_TRUE(weak.expired());
}

TEST(Engine, CountsWhatItDid) {
  testing::Setup setup;
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::FineTransposeProblem(1);
  ASSERT_TRUE(testing::RunJob(*engine, problem, {testing::Ascending(problem, 50'000)}));
  ASSERT_TRUE(testing::BecomesIdle(*engine));
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.jobs_admitted, 1U);
  EXPECT_EQ(stats.blocks_copied, 72U);
  EXPECT_EQ(stats.bytes_copied_in, 72U * 4096);
  EXPECT_EQ(stats.bytes_copied_out, 72U * 4096);
  EXPECT_EQ(stats.ranges_computed, 24U);
  EXPECT_GT(stats.device_bytes_cached, 0U);
  EXPECT_FALSE(stats.device_failed);
}

}  // namespace
}  // namespace tilewire::engine
