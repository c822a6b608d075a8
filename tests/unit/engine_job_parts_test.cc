// The parts of a job by themselves, each against what its invariant says.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "server/engine/job/help.h"
#include "server/engine/job/input_blocks.h"
#include "server/engine/job/ranges.h"
#include "server/engine/job/region_copies.h"
#include "server/engine/job/streams.h"
#include "tests/devices/forwarding_device.h"
#include "tests/unit/engine_cuts.h"

namespace tilewire::engine {
namespace {

using testing::Cuts;
using testing::Ranged;
using Calls = std::vector<std::function<void()>>;

// --- input blocks ---------------------------------------------------------------------------------

TEST(InputBlocks, AreClaimedOnceAndMissedUntilThen) {
  InputBlocks input(3, 4, 1, nullptr);
  input.Stream(0);
  input.Stream(2);  // operand 1 does not come over streams
  EXPECT_EQ(input.missing(), 8);
  for (const uint32_t operand : {0U, 2U})
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(input.Claim(operand, i));
      EXPECT_FALSE(input.Claim(operand, i));
    }
  EXPECT_EQ(input.missing(), 0);
}

TEST(InputBlocks, WhoeverWaitsGoesOnWhenAPlaceIsFree) {
  InputBlocks input(1, 10, 2, nullptr);
  const auto first = input.Take(0), second = input.Take(1);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->staging, second->staging);
  EXPECT_FALSE(input.MayTake(2));
  EXPECT_FALSE(input.Take(2));
  std::vector<int> told;
  for (int stream = 0; stream < 2; ++stream)
    input.Wait({stream, 2 + stream, [&told, stream] { told.push_back(stream); }});
  EXPECT_EQ(input.WaiterOf(1)->index, 3);
  EXPECT_EQ(input.WaiterOf(2), nullptr);
  Calls calls;
  input.Wake(&calls);
  EXPECT_TRUE(calls.empty()) << "nothing is free";
  input.Free(*second);
  input.Wake(&calls);
  for (const auto& call : calls) call();
  EXPECT_EQ(told, (std::vector{0, 1})) << "all, in order: the first to ask again has the place";
  EXPECT_EQ(input.WaiterOf(1), nullptr);
  EXPECT_EQ(input.Take(2)->staging, second->staging);
}

TEST(InputBlocks, GoStraightToTheirPlaceWithoutStaging) {
  InputBlocks input(1, 4, std::nullopt, nullptr);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(input.Take(i)->staging, -1);
  input.Free({});
  EXPECT_TRUE(input.MayTake(0));
}

TEST(InputBlocks, BeyondTheWindowOneWaitsWhateverIsFree) {
  const Cuts cuts(1, Ranged(1024, 256, 0), {8}, false);
  Window window(cuts, {.slots = 2, .slot_bytes = 256}, 256, 1);
  InputBlocks input(1, 4, 4, &window);
  EXPECT_TRUE(input.MayTake(1));
  EXPECT_FALSE(input.Take(2));
  Calls calls;
  input.Wait({0, 2, [] {}});
  input.Wait({1, 3, [] {}});
  window.Leave(0, 256);
  input.Wake(&calls);
  EXPECT_EQ(calls.size(), 1U);
  EXPECT_EQ(input.WaiterOf(0), nullptr);
  ASSERT_NE(input.WaiterOf(1), nullptr) << "block 3 needs the slot of range 1";
  input.WakeAll(&calls);
  EXPECT_EQ(calls.size(), 2U);
}

// --- ranges ---------------------------------------------------------------------------------------

// Against bytes: a range may be computed with the block that brings its last one, in the last operand.
TEST(Ranges, AreToldOnceWithTheirLastBlockHoweverBlocksCome) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const auto below = [&random](uint64_t bound) { return static_cast<int64_t>(random() % bound); };
    const int64_t total = 1 + below(60);
    const Cuts cuts(2, Ranged(total, 1 + below(20), below(9)), {8}, false);
    const BlockGrid grid{total, 1 + below(20)};
    const auto arriving = static_cast<size_t>(1 + below(2));
    const bool together = below(4) == 0;
    Ranges ranges(cuts, grid, arriving, together);
    std::vector<int64_t> order(arriving * static_cast<size_t>(grid.count()));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::vector<bool>> there(arriving, std::vector<bool>(static_cast<size_t>(total)));
    std::vector<bool> told(static_cast<size_t>(cuts.range_count()));
    for (size_t i = 0; i < order.size(); ++i) {
      const int64_t block = order[i] / static_cast<int64_t>(arriving);
      auto& bytes = there[static_cast<size_t>(order[i]) % arriving];
      std::fill(bytes.begin() + grid.begin(block), bytes.begin() + grid.end(block), true);
      const Ranges::Span complete = ranges.BlockArrived(block);
      for (int64_t range = complete.begin; range < complete.end; ++range) {
        EXPECT_FALSE(told[static_cast<size_t>(range)]);
        told[static_cast<size_t>(range)] = true;
      }
      for (int64_t range = 0; range < cuts.range_count(); ++range) {
        const auto [begin, end] = cuts.range_bytes(range);
        const bool all = std::all_of(there.begin(), there.end(), [b = begin, e = end](const auto& operand) {
          return std::find(operand.begin() + b, operand.begin() + e, false) == operand.begin() + e;
        });
        ASSERT_EQ(told[static_cast<size_t>(range)], together ? i + 1 == order.size() : all) << round;
      }
    }
  }
}

TEST(Ranges, FillTheResultUpToTheFirstThatIsNotDone) {
  const Cuts cuts(1, Ranged(1000, 300, 0), {1000}, true);
  Ranges ranges(cuts, {1000, 100}, 1, false);
  const std::pair<int64_t, int64_t> steps[] = {{1, 0}, {0, 600}, {3, 600}, {2, 1000}};
  for (const auto& [range, filled] : steps) {
    EXPECT_FALSE(ranges.all_done());
    ranges.Done(range);
    EXPECT_EQ(ranges.filled_bytes(), filled) << range;
  }
  EXPECT_TRUE(ranges.all_done());
  EXPECT_EQ(ranges.done(), 4);
}

// --- streams --------------------------------------------------------------------------------------

TEST(Streams, EndOneByOneAndFailTogether) {
  Streams streams;
  EXPECT_EQ(streams.Add(), 1);
  EXPECT_EQ(streams.Add(), 2);
  EXPECT_EQ(streams.count(), 3);
  for (const int stream : {2, 0, 1}) {
    EXPECT_FALSE(streams.all_half_closed());
    streams.HalfClose(stream);
    EXPECT_TRUE(streams.half_closed(stream));
  }
  EXPECT_TRUE(streams.all_half_closed());
  streams.Done(2);
  EXPECT_FALSE(streams.joined_done());
  streams.Done(1);
  EXPECT_TRUE(streams.joined_done()) << "whether the first is says nothing of the others";
  EXPECT_FALSE(streams.done(0));

  const Status of_all(Code::kUnavailable, "STREAM_LOST", ""), own(Code::kInvalidArgument, "RUN_RULE", "");
  EXPECT_EQ(streams.Told(1, of_all).reason(), "STREAM_LOST");
  streams.Lose(1, own);
  EXPECT_EQ(streams.Told(1, of_all).reason(), "RUN_RULE");
  EXPECT_EQ(streams.Told(0, of_all).reason(), "STREAM_LOST");
}

// --- copies from regions --------------------------------------------------------------------------

TEST(RegionCopies, GoBlockByBlockOverTheOperandsWithinTheBound) {
  RegionCopies copies({1, 4}, 3, 2);
  ASSERT_TRUE(copies.any());
  int64_t begun = 0;
  for (int64_t done = 0; done < 6; ++done) {
    while (const auto next = copies.Next()) {
      EXPECT_EQ(next->operand, begun % 2 == 0 ? 1U : 4U);
      EXPECT_EQ(next->index, begun / 2);
      EXPECT_EQ(copies.lowest_block(), begun / 2);
      copies.Begin();
      ++begun;
    }
    EXPECT_EQ(begun, std::min<int64_t>(done + 2, 6));
    EXPECT_EQ(copies.Done(), done == 5);
  }
  EXPECT_EQ(copies.lowest_block(), 3);
  EXPECT_FALSE(RegionCopies({}, 3, 2).any());
}

// --- help -----------------------------------------------------------------------------------------

/// Counts who offers help. Nothing is submitted to it.
class CountingLane final : public ForwardingLane {
 public:
  CountingLane() : ForwardingLane(nullptr) {}
  void Help(std::chrono::microseconds) override { ++helped; }
  void AnnounceHelp() override { ++standing; }
  void WithdrawHelp() override { --standing; }
  int standing = 0, helped = 0;
};

TEST(HelpOffer, IsWithdrawnOnceWhoeverDoes) {
  CountingLane lane;
  {
    HelpOffer offer;
    EXPECT_FALSE(offer.stands());
    offer.Withdraw();
    EXPECT_EQ(lane.standing, 0);
    offer.Announce(&lane);
    EXPECT_TRUE(offer.stands());
    EXPECT_EQ(lane.standing, 1);
    (void)offer.Glance();
    EXPECT_EQ(lane.helped, 1);
    offer.Withdraw();
    offer.Withdraw();
    EXPECT_EQ(lane.standing, 0);
    EXPECT_FALSE(offer.stands());
  }
  { HelpOffer().Announce(&lane); }
  EXPECT_EQ(lane.standing, 0) << "the end of a job withdraws it";
}

}  // namespace
}  // namespace tilewire::engine
