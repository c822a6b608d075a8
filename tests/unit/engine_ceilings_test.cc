#include "server/base/time_source.h"
#include "server/engine/measure/ceilings.h"

#include <future>
#include <set>

#include <gtest/gtest.h>

#include "tests/unit/engine_testing.h"

namespace tilewire::engine {
namespace {

constexpr int64_t kKi = 1024, kMi = 1024 * kKi;

std::set<std::string> Names(const std::vector<Ceiling>& ceilings) {
  std::set<std::string> names;
  for (const Ceiling& ceiling : ceilings) {
    EXPECT_GT(ceiling.bytes_per_second, 0) << ceiling.name;
    EXPECT_TRUE(names.insert(ceiling.name).second) << ceiling.name;
  }
  return names;
}

const std::set<std::string> kHost{"host_copy_1", "host_copy_all", "device_copy"};

TEST(Ceilings, EveryTierOnceAndCopiesOnlyWhereThereAreAny) {
  const auto staged = MakeStaged(OpenCpuDevice(2));
  const auto all = MeasureCeilings(staged.get(), {kMi});
  ASSERT_TRUE(all) << all.error().ToString();
  std::set<std::string> expected = kHost;
  expected.insert({"h2d", "d2h", "h2d_both", "d2h_both"});
  EXPECT_EQ(Names(*all), expected);
  const auto host = OpenCpuDevice(2);
  const auto fewer = MeasureCeilings(host.get(), {4 * kKi});
  ASSERT_TRUE(fewer) << fewer.error().ToString();
  EXPECT_EQ(Names(*fewer), kHost);
}

TEST(Ceilings, FailAsTheDeviceDoesAndLeaveNothingBehind) {
  const auto shortage = std::make_shared<Shortage>();
  const auto faults = std::make_shared<Faults>();
  const auto device = MakeStaged(MakeOutOfMemory(MakeFaulty(OpenCpuDevice(1), faults), shortage));
  shortage->FailNthPinned(2);
  EXPECT_EQ(MeasureCeilings(device.get(), {kMi}).error().reason(), "BUSY");
  for (const Submitted kind : {Submitted::kCopyIn, Submitted::kCopyOut, Submitted::kLaunch}) {
    faults->FailNth(kind, 5, Status(Code::kInternal, "INTERNAL_ERROR", "told to fail"));
    EXPECT_EQ(MeasureCeilings(device.get(), {kMi}).error().reason(), "INTERNAL_ERROR");
  }
  EXPECT_EQ(shortage->leased_device_bytes(), 0);
  EXPECT_TRUE(MeasureCeilings(device.get(), {kMi}));
}

/// Asks an engine and returns the promise's future.
std::future<Result<std::vector<Ceiling>>> AskForCeilings(Engine& engine) {
  auto answer = std::make_shared<std::promise<Result<std::vector<Ceiling>>>>();
  auto future = answer->get_future();
  engine.MeasureCeilings(
      [answer](Result<std::vector<Ceiling>> ceilings) { answer->set_value(std::move(ceilings)); });
  return future;
}

TEST(Ceilings, OneMeasurementAtATime) {
  ManualTime time;
  testing::Setup setup;
  setup.options.time = &time;
  const auto engine = testing::MakeEngine(setup);

  std::vector<std::future<Result<std::vector<Ceiling>>>> asked;
  int good = 0, busy = 0;
  for (int i = 0; i < 8; ++i) asked.push_back(AskForCeilings(*engine));
  for (auto& future : asked) {
    const auto answer = future.get();
    good += answer.has_value();
    busy += !answer && answer.error().reason() == "BUSY";
    if (!answer) {
      EXPECT_GE(answer.error().detail()->retry_after_ms, 0);
    }
  }
  EXPECT_EQ(good, 1);
  EXPECT_EQ(good + busy, 8);
  const auto soon = AskForCeilings(*engine).get();
  ASSERT_FALSE(soon) << "whoever asks in a loop would keep the machine busy";
  EXPECT_EQ(soon.error().reason(), "BUSY");
  EXPECT_EQ(soon.error().detail()->retry_after_ms, 500) << "it took no time by this clock";
  time.Advance(std::chrono::milliseconds(499));
  EXPECT_EQ(AskForCeilings(*engine).get().error().detail()->retry_after_ms, 1);
  time.Advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(AskForCeilings(*engine).get().has_value()) << "the turn comes back";
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.device_bytes_in_use, 0u);
  EXPECT_EQ(stats.pinned_bytes_in_use, 0u);
  EXPECT_EQ(stats.jobs_in_flight, 0u);
}

TEST(Ceilings, RefusedWithTheAdmissionAndTheTurnComesBack) {
  testing::Setup setup;
  const auto engine = testing::MakeEngine(setup);
  engine->Close(Status(Code::kUnavailable, "DRAINING", "going away"));
  for (int i = 0; i < 2; ++i) {
    const auto answer = AskForCeilings(*engine).get();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().reason(), "DRAINING") << i;
  }
}

}  // namespace
}  // namespace tilewire::engine
