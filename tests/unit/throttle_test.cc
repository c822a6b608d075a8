// Which share of its calls a server asks its clients for.
#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>

#include "tests/unit/throttled.h"

namespace tilewire::rpc {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST_F(Throttled, NobodyIsAskedWhereNoMoreComeThanAreDone) {
  const Sum sum = Flood(1000, 2);
  EXPECT_EQ(sum.done, 1000 * kDonePerMs);
  EXPECT_EQ(sum.asked, 0);
}

TEST_F(Throttled, NorWhereManyCallersWaitForTheirAnswers) {
  EXPECT_EQ(CallAgain(2000, 250).asked, 0) << "they wait for twelve milliseconds";
}

TEST_F(Throttled, NorByCallersWhoWaitForLongBecauseTheyAreMany) {
  for (int callers = 250; callers <= 1000; ++callers) ASSERT_EQ(CallAgain(5, callers).asked, 0);
  EXPECT_EQ(CallAgain(1000, 1000).asked, 0) << "fifty milliseconds";
}

TEST_F(Throttled, NorByManyMoreWhoBeginAtOnce) {
  EXPECT_EQ(CallAgain(1000, 100).asked, 0);
  EXPECT_EQ(CallAgain(1000, 250).asked, 0);
}

TEST_F(Throttled, WhatComesAtOnceIsDone) {
  (void)Flood(100, 1);
  for (int burst = 0; burst < 10; ++burst) {
    Come(250);
    EXPECT_EQ(Flood(100, 1).asked, 0);
  }
}

class ThrottledBy : public Throttled, public ::testing::WithParamInterface<int> {};

/// Of eight connections a fifth is one or two, so at five times the load a little less is done.
TEST_P(ThrottledBy, NineTenthsOfWhatCanBeDoneIsDoneSoonAndOneCallOfManyRefused) {
  constexpr int kMs = 3000;
  (void)Flood(300, 2 * GetParam());
  Sum sum;
  double share = 0;
  for (int ms = 0; ms < kMs; ++ms) {
    const Sum more = Flood(1, 2 * GetParam());
    sum.done += more.done, sum.asked += more.asked;
    sum.longest = std::max(sum.longest, more.longest);
    share += throttle_.share() / kMs;
  }
  EXPECT_GE(sum.done, kMs * kDonePerMs * (GetParam() < 5 ? 90 : 85) / 100);
  EXPECT_LE(sum.longest, milliseconds(25));
  EXPECT_LE(sum.asked, kMs * kDonePerMs * GetParam() / 50);
  EXPECT_NEAR(share, 1.0 / GetParam(), 0.25 / GetParam());
}

TEST_P(ThrottledBy, FewComeBeforeTheyKnow) {
  (void)Flood(1000, 1);
  const Sum sum = Flood(100, 2 * GetParam());
  EXPECT_LE(sum.longest, milliseconds(60));
}

TEST_P(ThrottledBy, NobodyIsAskedAnyMoreSoonAfterIt) {
  (void)Flood(1000, 2 * GetParam());
  (void)Flood(GetParam() < 5 ? 300 : 1000, 1);
  EXPECT_EQ(throttle_.share(), 1);
  EXPECT_EQ(Flood(300, 1).asked, 0);
}

TEST_P(ThrottledBy, NorAfterAPause) {
  (void)Flood(1000, 2 * GetParam());
  now_ += std::chrono::seconds(10);
  EXPECT_EQ(Flood(100, 1).asked, 0);
}

INSTANTIATE_TEST_SUITE_P(Times, ThrottledBy, ::testing::Values(2, 3, 5));

class ThrottledMany : public Throttled {
 protected:
  ThrottledMany() : Throttled(500) {}
};

TEST_F(ThrottledMany, HoldBackForLongerSoThatFewAreRefused) {
  (void)Flood(2000, 4);
  const Sum sum = Flood(2000, 4);
  EXPECT_GE(sum.done, 2000 * kDonePerMs * 85 / 100);
  EXPECT_LE(sum.asked, 2000 * kDonePerMs / 5);
}

TEST_F(Throttled, AConnectionIsAskedOnceInATurnThoughItDoesNotHoldBack) {
  obey_ = false;
  const Sum sum = Flood(1000, 6);
  EXPECT_LE(sum.asked, 8 * 1000 / 32) << "of eight connections";
  EXPECT_GE(sum.asked, 8 * 1000 / 300);
}

TEST_F(Throttled, ConnectionsSendAtTimesOfTheirOwn) {
  (void)Flood(1000, 6);
  int fewest = 8, most = 0;
  for (int ms = 0; ms < 500; ++ms) {
    (void)Flood(1, 6);
    const auto held = static_cast<int>(std::count_if(connections_.begin(), connections_.end(),
                                                     [&](const Connection& one) { return now_ < one.held; }));
    fewest = std::min(fewest, held), most = std::max(most, held);
  }
  EXPECT_GE(fewest, 3) << "five of eight are to";
  EXPECT_LE(most, 7);
}

TEST_F(Throttled, WhoseCallsHardlyWaitIsNotAskedBecauseOfOthers) {
  (void)Flood(1000, 2);
  const Throttle::Passage own(&throttle_, &connections_[0].turn->waiting);
  std::deque<Throttle::Passage> others;
  for (int i = 0; i < 1000; ++i) {  // of one, whose calls all wait, for whatever reason
    for (int calls = 0; calls < 4; ++calls) others.emplace_back(&throttle_, &connections_[1].turn->waiting);
    now_ += microseconds(100);
    throttle_.Look(now_);
  }
  ASSERT_LT(throttle_.share(), 1);
  int asked = 0;
  for (int i = 0; i < 1000; ++i) {
    now_ += milliseconds(1);
    EXPECT_FALSE(throttle_.Asks(connections_[0].turn, now_));
    asked += throttle_.Asks(connections_[1].turn, now_).has_value();
  }
  EXPECT_GT(asked, 0);
}

/// Where all who send are served alike.
TEST_F(Throttled, OfWhomSoMuchIsOnItsWayThatItWouldWaitForLongIsAskedBeforeHisTurn) {
  EXPECT_FALSE(throttle_.Asks(connections_[0].turn, now_, 100000)) << "there are not too many";
  (void)Flood(1000, 4);
  ASSERT_LT(throttle_.share(), 1);
  int send = 0;
  const Connection* youngest = nullptr;
  for (const Connection& each : connections_) {
    if (now_ < each.turn->until.load()) continue;
    ++send;
    if (youngest == nullptr || each.turn->order > youngest->turn->order) youngest = &each;
  }
  ASSERT_GT(send, 0);
  const int third = 20 * kDonePerMs / 3 / send;
  EXPECT_FALSE(throttle_.Asks(youngest->turn, now_, third / 2));
  EXPECT_TRUE(throttle_.Asks(youngest->turn, now_, 2 * third));
}

TEST_F(Throttled, ItComesToItselfSoonAfterItStoodThoughFewCallsCome) {
  (void)Flood(1000, 2);
  stands_ = true;
  for (int ms = 0; ms < 5000; ++ms) {
    Come(1);
    if (waiting_.size() > 10) {
      waiting_.back().passage->FindsNoPlace();
      waiting_.pop_back();
    }
    for (int i = 0; i < 10; ++i) Pass();
  }
  ASSERT_LT(throttle_.share(), 1);
  stands_ = false;
  for (int ms = 0; ms < 1000; ++ms) {
    if (ms % 5 == 0) Come(1);
    for (int i = 0; i < 10; ++i) Pass();
  }
  EXPECT_EQ(throttle_.share(), 1);
}

TEST_F(Throttled, OldCallsAreRefusedUntilAllKnow) {
  (void)Flood(100, 1);
  EXPECT_FALSE(throttle_.IsOld(milliseconds(500), now_)) << "there are not too many";
  for (int ms = 0; ms < 1000 && throttle_.share() == 1; ++ms) (void)Flood(1, 6);
  EXPECT_TRUE(throttle_.IsOld(milliseconds(21), now_));
  EXPECT_FALSE(throttle_.IsOld(milliseconds(19), now_));
  (void)Flood(251, 6);
  EXPECT_FALSE(throttle_.IsOld(milliseconds(79), now_));
}

/// Those who all were asked come again as soon as what waits is done, and quickly one after the other.
TEST_F(Throttled, WhereAllHadToBeAskedTheServerHasSomethingToDoSoonAgain) {
  (void)Flood(1000, 2);
  for (int ms = 0; ms < 1000 && throttle_.share() == 1; ++ms) (void)Flood(1, 6);
  const Sum first = Flood(200, 6);
  EXPECT_GE(first.done, 0.9 * 200 * kDonePerMs);
}

/// To refuse one that was read takes as long as to serve it.
TEST(ThrottledSlow, AsManyAs48AreNotRefusedAsOldBeforeTheyWaitForVeryLong) {
  for (const auto& [per_second, old_ms] : {std::pair{1000, 48}, {300, 80}}) {
    Throttle throttle(milliseconds(20));
    TimePoint now = TimePoint{} + std::chrono::hours(1);
    FloodSlowly(&throttle, per_second, &now);
    EXPECT_FALSE(throttle.IsOld(milliseconds(old_ms - 4), now));
    EXPECT_TRUE(throttle.IsOld(milliseconds(old_ms + 4), now));
  }
  Throttle light(milliseconds(20), 400);
  TimePoint now = TimePoint{} + std::chrono::hours(1);
  FloodSlowly(&light, 1000, &now);
  EXPECT_FALSE(light.IsOld(milliseconds(9), now));
  EXPECT_TRUE(light.IsOld(milliseconds(11), now));
}

/// What came while a server stood is not served to the end, one too late after the other.
TEST_F(Throttled, VeryOldOnesAreAtAnyTimeButNotAllOfThem) {
  for (int ms = 0; ms < 1000 && throttle_.share() == 1; ++ms) (void)Flood(1, 6);
  (void)Flood(251, 6);
  ASSERT_LT(throttle_.share(), 1);
  for (int begun = 0; begun < 3; ++begun) {
    int refused = 0;
    while (refused < 100 && throttle_.IsOld(milliseconds(81), now_)) ++refused;
    EXPECT_EQ(refused, 8);
    Throttle::Passage(&throttle_, nullptr).Begins();
  }
}

TEST_F(Throttled, AQueueThatIsFullIsTooLong) {
  (void)Flood(100, 1);
  for (int i = 0; i < 500 && throttle_.share() == 1; ++i) {
    Come(waiting_.size() < 100 ? 4 : 2);  // five milliseconds of calls, and always as many
    waiting_.back().passage->FindsNoPlace();
    Pass();
  }
  EXPECT_LT(throttle_.share(), 1);
}

TEST_F(Throttled, WhatItCouldDoIsForgottenWhenItStands) {
  (void)Flood(1000, 2);
  stands_ = true;
  for (int ms = 0; ms < 2000 && throttle_.share() == 1; ++ms) {
    Come(1);  // a twentieth of what it could do
    for (int i = 0; i < 10; ++i) Pass();
  }
  EXPECT_LT(throttle_.share(), 1);
}

TEST_F(Throttled, WithoutALimitNobodyIsAsked) {
  Throttle any{Clock::duration{}};
  const auto turn = std::make_shared<Turn>();
  std::deque<Throttle::Passage> calls;
  for (int i = 0; i < 10000; ++i) {
    now_ += microseconds(10);
    calls.emplace_back(&any, nullptr);
    ASSERT_FALSE(any.Look(now_));
    ASSERT_FALSE(any.Asks(turn, now_));
  }
}

TEST(ThrottledSlow, ConnectionsThatAreGoneAreForgottenThoughTheRateIsNotKnown) {
  Throttle throttle(milliseconds(20));
  TimePoint now = TimePoint{} + std::chrono::hours(1);
  std::deque<std::weak_ptr<Turn>> gone;
  for (int i = 0; i < 1000; ++i) {
    now += milliseconds(10);
    const auto turn = std::make_shared<Turn>();
    throttle.Look(now);
    EXPECT_FALSE(throttle.Asks(turn, now));
    gone.emplace_back(turn);
  }
  EXPECT_LE(std::ranges::count_if(gone, [](const auto& each) { return !each.expired(); }), 1);
}

/// A hundred calls a second, each of which is followed by refusals of those that were very old.
TEST(ThrottledSlow, RefusingTheOldDoesNotMakeAServerSlowEither) {
  Throttle throttle(milliseconds(20));
  TimePoint now = TimePoint{} + std::chrono::hours(1);
  std::deque<Throttle::Passage> waiting;
  int refused = 0;
  for (int look = 0; look < 800; ++look) {
    now += milliseconds(5);
    waiting.emplace_back(&throttle, nullptr);
    if (look % 2 == 0) {
      waiting.front().Begins();
      waiting.pop_front();
      for (int i = 0; i < 1000 && look >= 200 && throttle.IsOld(milliseconds(100), now); ++i) ++refused;
    }
    throttle.Look(now);
  }
  ASSERT_GT(refused, 1000);
  const auto hold = throttle.Refuses(now);
  ASSERT_TRUE(hold);
  EXPECT_NEAR(std::chrono::duration<double>(hold->waits).count(), static_cast<double>(waiting.size()) / 100,
              1);
}

}  // namespace
}  // namespace tilewire::rpc
