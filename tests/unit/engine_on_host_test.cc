// What is too small for a launch: the host computes it beside a GPU, to the same bits.
#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "server/engine/admission/planner.h"
#include "tests/unit/engine_arrays_testing.h"
#include "tests/unit/engine_testing.h"

namespace tilewire::engine {
namespace {

using testing::Problem;

std::unique_ptr<Operation> Whole(const Problem& problem) {
  auto operation = problem.make();
  auto whole = operation->Whole();
  return whole ? std::move(whole) : std::move(operation);
}

testing::Setup OnHost(int64_t host_bytes) {
  testing::Setup setup;
  setup.reach_pinned = true;
  setup.options.host_bytes = host_bytes;
  setup.faults = std::make_shared<Faults>();
  return setup;
}

Result<testing::Bytes> Answer(Engine& engine, const Problem& problem, Timing* timing = nullptr) {
  TILEWIRE_ASSIGN_OR_RETURN(const std::shared_ptr<Job> job, testing::Open(engine, Whole(problem)));
  const testing::Feeders feeders(job, problem, {testing::Ascending(problem, 1000)});
  auto bytes = testing::Collect(*job);
  if (timing) *timing = job->timing();
  return bytes;
}

TEST(OnHost, SmallCallsNeedNoLaunch) {
  const testing::Setup setup = OnHost(8192);
  const auto engine = testing::MakeEngine(setup);
  const Problem problems[] = {testing::RmseProblem(DType::kF32, {1024}, {}, 1),
                              testing::TransposeProblem(DType::kU8, {90, 91}, {}, 2),
                              testing::GaussianProblem(DType::kF64, {1024}, 0, 1, 3, 4096)};
  for (const Problem& problem : problems) {
    Timing timing;
    const auto answer = Answer(*engine, problem, &timing);
    ASSERT_TRUE(answer) << answer.error().ToString();
    EXPECT_EQ(*answer, problem.expected);
    EXPECT_EQ(timing.device, "cpu");
    EXPECT_GT(timing.of(Stage::kKernel), 0);
  }
  EXPECT_EQ(engine->stats().jobs_on_host, std::size(problems));
  EXPECT_EQ(setup.faults->count(Submitted::kLaunch), 0) << "by the device";
  EXPECT_TRUE(testing::BecomesIdle(*engine));
}

TEST(OnHost, LargerCallsAndAllWhereNoneAreWantedAreLaunched) {
  const Problem fits = testing::RmseProblem(DType::kF32, {1024}, {}, 1),
                larger = testing::RmseProblem(DType::kF32, {1025}, {}, 1);
  for (const int64_t host_bytes : {int64_t{0}, int64_t{8192}}) {
    const testing::Setup setup = OnHost(host_bytes);
    const auto engine = testing::MakeEngine(setup);
    int64_t launches = 0;
    for (const Problem* problem : {&fits, &larger}) {
      Timing timing;
      const auto answer = Answer(*engine, *problem, &timing);
      ASSERT_TRUE(answer) << answer.error().ToString();
      EXPECT_EQ(*answer, problem->expected);
      const bool launched = problem == &larger || host_bytes == 0;
      if (launched) ++launches;
      EXPECT_EQ(setup.faults->count(Submitted::kLaunch), launches);
    }
    EXPECT_EQ(engine->stats().jobs_on_host, host_bytes > 0 ? 1U : 0U);
  }
}

// Sums and their finish on the host too, where more than a tile is to be computed there.
TEST(OnHost, ScratchIsWhereTheWorkIs) {
  testing::Setup setup = OnHost(256 << 10);
  setup.shortage = std::make_shared<Shortage>();
  const auto engine = testing::MakeEngine(setup);
  setup.shortage->CapDevice(0);  // which the host could not reach on a GPU
  const Problem rmse = testing::RmseProblem(DType::kF32, {20'000}, {}, 1);
  ASSERT_GT(Whole(rmse)->scratch_bytes(), 0);
  Timing timing;
  const auto answer = Answer(*engine, rmse, &timing);
  ASSERT_TRUE(answer) << answer.error().ToString();
  EXPECT_EQ(*answer, rmse.expected);
  EXPECT_EQ(timing.device, "cpu");
  EXPECT_EQ(setup.faults->count(Submitted::kLaunch), 0);
}

TEST(OnHost, WhoSaysHowTheDeviceIsToRunItMeansTheDevice) {
  const testing::Setup setup = OnHost(8192);
  const auto engine = testing::MakeEngine(setup);
  const Problem rmse = testing::RmseProblem(DType::kF32, {100}, {}, 1);
  const JobOptions told[] = {{.block_bytes = 4096}, {.lanes = 1}, {.sequential = true}};
  int64_t launches = 0;
  for (const JobOptions& options : told) {
    const auto job = testing::Open(*engine, Whole(rmse), options);
    ASSERT_TRUE(job);
    const testing::Feeders feeders(*job, rmse, {testing::Ascending(rmse, 1000)});
    EXPECT_EQ(testing::Collect(**job), rmse.expected);
    EXPECT_EQ(setup.faults->count(Submitted::kLaunch), ++launches);
  }
  EXPECT_EQ(engine->stats().jobs_on_host, 0U);
}

TEST(OnHost, OnlyWhatIsSentAndHandedOutInOnePieceOfWork) {
  const Planner::Limits limits{.lanes = 3,
                               .max_streams = 4,
                               .block = {.bytes = 4096},
                               .bulk_device_bytes = 64 << 20,
                               .pinned_bytes = 64 << 20,
                               .kernels_reach_pinned = true,
                               .host_bytes = 8192};
  const auto on_host = [&](const Planner::Limits& of, std::unique_ptr<Operation> made, Places places) {
    OperationPtr operation = std::move(made);
    places.operands.resize(operation->operands().size());
    std::string why;
    return Planner(of).Plan(&operation, {}, std::move(places), &why).layout.on_host;
  };
  const Problem rmse = testing::RmseProblem(DType::kF32, {64}, {}, 1);
  EXPECT_TRUE(on_host(limits, Whole(rmse), {}));
  const Problem ranges = testing::GaussianProblem(DType::kF32, {1000}, 0, 1, 1, 100);
  EXPECT_FALSE(on_host(limits, ranges.make(), {}));
  EXPECT_FALSE(on_host(limits, Whole(rmse), {{}, Stored{}}));
  EXPECT_FALSE(on_host(limits, Whole(rmse), {{}, CopiedTo{}}));
  EXPECT_FALSE(on_host(limits, Whole(rmse), {{ReadIn{}, Streamed{}}, HandedOut{}})) << "the device's memory";
  EXPECT_FALSE(on_host(limits, Whole(rmse), {{CopiedFrom{}, Streamed{}}, HandedOut{}}));
  Planner::Limits other = limits;
  other.kernels_reach_pinned = false;
  EXPECT_FALSE(on_host(other, Whole(rmse), {}));
  other.host_memory = true;
  EXPECT_FALSE(on_host(other, Whole(rmse), {})) << "a CPU device's lanes share it with their workers";
}

}  // namespace
}  // namespace tilewire::engine
