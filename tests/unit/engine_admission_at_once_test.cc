// Who is let in without any detour: while everything is there and nobody waits.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "server/engine/admission/admission.h"
#include "tests/unit/engine_time_testing.h"
#include "tests/unit/executors.h"

namespace tilewire::engine {
namespace {

class AtOnceTest : public ::testing::Test {
 protected:
  ~AtOnceTest() override { testing::Flush(timer_); }
  std::optional<Ticket> AtOnce(bool small, int64_t device_bytes, const OwnLimits& own = {}) {
    Demand demand{.small = small, .device_bytes = device_bytes, .owner = "somebody", .own = own};
    return admission_.AtOnce(&demand);
  }
  EngineStats Stats() const {
    EngineStats stats;
    admission_.Snapshot(&stats);
    return stats;
  }

  ManualTime time_;
  Timer timer_{&time_};
  tilewire::testing::AtOnce executor_;
  // Small requests own 100 bytes, bulk 700.
  Admission admission_{{.device_bytes = 800, .pinned_bytes = 80, .max_in_flight = 8}, &timer_, &executor_};
};

TEST_F(AtOnceTest, TakesWhatFits) {
  auto most = AtOnce(false, 600);
  ASSERT_TRUE(most);
  EXPECT_TRUE(AtOnce(true, 50)) << "and gives it back";
  EXPECT_EQ(Stats().device_bytes_in_use, 600U);
  EXPECT_EQ(Stats().jobs_in_flight, 1U);
  most.reset();
  EXPECT_EQ(Stats().device_bytes_in_use, 0U);
  EXPECT_EQ(Stats().jobs_admitted, 2U);
}

TEST_F(AtOnceTest, WhereItIsNothingNothingHasHappened) {
  const auto most = AtOnce(false, 600);
  EXPECT_FALSE(AtOnce(false, 200)) << "there is room for 100";
  EXPECT_FALSE(AtOnce(false, 5000)) << "never";
  EXPECT_FALSE(AtOnce(false, 50, {.device_bytes = 10})) << "more than he may have";
  const EngineStats stats = Stats();
  EXPECT_EQ(stats.device_bytes_in_use, 600U);
  EXPECT_EQ(stats.jobs_in_flight, 1U);
  EXPECT_EQ(stats.jobs_refused_busy + stats.jobs_refused_limit, 0U) << "who asks on is refused, if need be";
}

TEST_F(AtOnceTest, WhoIsBoundedGetsWhatIsHisAndGivesItBack) {
  const OwnLimits own{.max_in_flight = 2, .device_bytes = 100};
  auto first = AtOnce(false, 60, own);
  ASSERT_TRUE(first);
  EXPECT_FALSE(AtOnce(false, 50, own)) << "bytes";
  auto second = AtOnce(false, 40, own);
  ASSERT_TRUE(second);
  EXPECT_FALSE(AtOnce(false, 0, own)) << "places";
  first.reset();
  second.reset();
  EXPECT_TRUE(AtOnce(false, 100, own));
}

/// What a demand was told of its owner is no longer there when it asks again.
TEST_F(AtOnceTest, WhoWasForgottenMeanwhileIsLookedUpAnew) {
  const OwnLimits own{.max_in_flight = 1};
  const auto demand_of = [&](int owner) {
    return Demand{.device_bytes = 2, .owner = "owner " + std::to_string(owner), .own = own};
  };
  for (int owner = 0; owner < 100; ++owner) {  // known, and nobody is forgotten for whoever has something
    Demand first = demand_of(owner), second = first;
    auto held = admission_.AtOnce(&first);
    ASSERT_TRUE(held);
    EXPECT_FALSE(admission_.AtOnce(&second)) << "he has his one place";
    held.reset();
    Demand next = demand_of(1000 + owner), third = demand_of(owner);
    const auto others = admission_.AtOnce(&next);  // who has his one place, perhaps where that one was known
    held = admission_.AtOnce(&third);
    ASSERT_TRUE(held);
    EXPECT_FALSE(admission_.AtOnce(&second)) << "he has it again";
    held.reset();
    EXPECT_TRUE(admission_.AtOnce(&second));
  }
}

TEST_F(AtOnceTest, OwnersWithoutAnythingAreForgottenWhereThereAreMany) {
  const OwnLimits own{.max_in_flight = 1, .device_bytes = 100};
  const auto of = [&](int owner) {
    Demand demand{.device_bytes = 2, .owner = "owner " + std::to_string(owner), .own = own};
    return admission_.AtOnce(&demand);
  };
  auto held = of(0);
  ASSERT_TRUE(held);
  Ticket stays = held->Split(1);
  for (int round = 0; round < 2; ++round)
    for (int owner = 1; owner < 200; ++owner) EXPECT_TRUE(of(owner)) << owner;
  EXPECT_FALSE(of(0)) << "he has his one place";
  held.reset();
  EXPECT_TRUE(of(0));
  EXPECT_EQ(Stats().device_bytes_in_use, 1U) << "what stays";
  stays = {};
  EXPECT_EQ(Stats().device_bytes_in_use, 0U);
}

TEST_F(AtOnceTest, OvertakesNobody) {
  auto most = AtOnce(false, 600);
  std::optional<Ticket> later;
  const auto id = admission_.Request({.device_bytes = 300, .owner = "another"}, TimePoint::max(),
                                     [&](Result<Ticket> ticket) { later = *std::move(ticket); });
  EXPECT_NE(id, 0U);
  EXPECT_FALSE(AtOnce(false, 50));
  most.reset();
  EXPECT_TRUE(later);
  EXPECT_TRUE(AtOnce(false, 50));
}

TEST_F(AtOnceTest, NotOnceItIsClosed) {
  admission_.Close(Status(Code::kUnavailable, "DRAINING", "closed"));
  EXPECT_FALSE(AtOnce(true, 1));
}

}  // namespace
}  // namespace tilewire::engine
