// Where a job's arrays lie: what is asked for, and what the planner makes of it.
#include "server/engine/job/places.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "server/engine/admission/planner.h"
#include "tests/unit/engine_arrays_testing.h"
#include "tests/unit/engine_window_testing.h"

namespace tilewire::engine {
namespace {

using From = HandedOut::From;

Planner::Limits GpuLimits() {
  return {.lanes = 3,
          .max_streams = 4,
          .block = {.bytes = 4096},
          .bulk_device_bytes = 64 << 20,
          .pinned_bytes = 64 << 20,
          .kernels_reach_pinned = true};
}

JobLayout PlanOf(const Planner::Limits& limits, const testing::Problem& problem, Places places,
                 bool may_window = false) {
  OperationPtr operation = problem.make();
  places.operands.resize(operation->operands().size());
  std::string why;
  const JobOptions options{.may_window = may_window};
  return Planner(limits).Plan(&operation, options, std::move(places), &why).layout;
}

TEST(Places, FromWhereResultsAreHandedOutIsAMatterOfTheDevice) {
  const auto small = testing::TransposeProblem(DType::kU8, {20, 50}, {}, 1);
  const auto bulk = testing::TransposeProblem(DType::kU8, {2000, 500}, {}, 1);
  Planner::Limits limits = GpuLimits();
  EXPECT_TRUE(PlanOf(limits, small, {}).places.handed_out_from(From::kPinned));
  EXPECT_TRUE(PlanOf(limits, bulk, {}).places.handed_out_from(From::kBlocks));
  limits.kernels_reach_pinned = false;
  EXPECT_TRUE(PlanOf(limits, small, {}).places.handed_out_from(From::kBlocks));
  limits.host_memory = true;
  EXPECT_TRUE(PlanOf(limits, small, {}).places.handed_out_from(From::kInPlace));
  EXPECT_TRUE(PlanOf(limits, bulk, {}).places.handed_out_from(From::kInPlace));
}

TEST(Places, AnyOtherPlaceOfResultsStays) {
  const auto problem = testing::TransposeProblem(DType::kU8, {20, 50}, {}, 1);
  const ResultPlace others[] = {Stored{}, StoredBefore{}, CopiedTo{}, WrittenIn{}};
  for (const ResultPlace& place : others) {
    const JobLayout layout = PlanOf(GpuLimits(), problem, {{}, place});
    EXPECT_EQ(layout.places.result.index(), place.index());
    EXPECT_FALSE(layout.places.handed_out());
    EXPECT_EQ(layout.small, !std::holds_alternative<Stored>(place)) << "what stays is no small jobs' matter";
  }
}

// Of a ring, kernels cannot write into a region where ranges fill the result: it is copied there.
TEST(Places, AWindowedResultIsCopiedOutOfItsRing) {
  const auto filled = testing::GaussianProblem(DType::kF32, {200'000}, 0, 1, 1, 2000);
  const auto summed = testing::RmseProblem(DType::kU8, {100 * rmse::kTileElements}, {}, 1, 1);
  for (const auto* problem : {&filled, &summed}) {
    const JobLayout whole = PlanOf(GpuLimits(), *problem, {{}, WrittenIn{}}, true);
    EXPECT_EQ(whole.ring.slots, 0);
    EXPECT_TRUE(std::holds_alternative<WrittenIn>(whole.places.result));
    Planner::Limits limits = GpuLimits();
    limits.bulk_device_bytes = testing::BytesOf(*problem) / 3;
    const JobLayout windowed = PlanOf(limits, *problem, {{}, WrittenIn{}}, true);
    ASSERT_GT(windowed.ring.slots, 0);
    EXPECT_EQ(std::holds_alternative<CopiedTo>(windowed.places.result), problem == &filled);
  }
}

TEST(Places, AreWhatIsAskedForAndTakenOutOfIt) {
  testing::Setup setup;
  const auto engine = testing::MakeEngine(setup);
  const auto problem = testing::RmseProblem(DType::kU8, {1000}, {}, 1);
  const auto operation = problem.make();
  JobOptions options{.residents = testing::PutOperands(*engine, problem)};
  options.residents[0] = nullptr;
  options.regions.resize(2);
  const std::byte* const data = options.residents[1]->data();
  const Places places = MakePlaces(*operation, nullptr, &options);
  EXPECT_TRUE(options.residents.empty() && options.regions.empty());
  EXPECT_TRUE(places.handed_out());
  EXPECT_EQ(places.arriving(), 1U);
  EXPECT_EQ(places.streamed(), 1U);
  EXPECT_TRUE(std::holds_alternative<Streamed>(places.operands[0]));
  EXPECT_EQ(DataThere(places.operands[0]), nullptr);
  EXPECT_EQ(DataThere(places.operands[1]), data);
}

}  // namespace
}  // namespace tilewire::engine
