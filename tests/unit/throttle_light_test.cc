// The same of light calls, of which a refusal costs about as much as an answer: what is refused as old, and
// what a share is worth while some still hold back as they were told.
#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>

#include "tests/unit/throttled.h"

namespace tilewire::rpc {
namespace {

using std::chrono::milliseconds;

class ThrottledLight : public Throttled {
 protected:
  ThrottledLight() : Throttled(8, milliseconds(5), 256) {}
};

TEST_F(ThrottledLight, OldOnesAreOnlyUntilAllKnow) {
  for (int ms = 0; ms < 1000 && throttle_.share() == 1; ++ms) (void)Flood(1, 6);
  EXPECT_TRUE(throttle_.IsOld(milliseconds(3), now_));
  EXPECT_FALSE(throttle_.IsOld(milliseconds(2), now_));
  (void)Flood(251, 6);
  ASSERT_LT(throttle_.share(), 1);
  EXPECT_FALSE(throttle_.IsOld(milliseconds(500), now_));
}

/// However short `late` is: a server takes that long now and then.
TEST(ThrottledSoon, NobodyIsOldBeforeAMillisecond) {
  Throttle throttle(std::chrono::microseconds(500), 256);
  TimePoint now = TimePoint{} + std::chrono::hours(1);
  FloodSlowly(&throttle, 1000, &now);
  EXPECT_FALSE(throttle.IsOld(std::chrono::microseconds(900), now));
  EXPECT_TRUE(throttle.IsOld(std::chrono::microseconds(1100), now));
}

/// Clients may have sent thousands by the time that they know; and a server may stand at any time.
TEST_F(ThrottledLight, AndAgainWhereTheyWaitForVeryLong) {
  for (int ms = 0; ms < 1000 && throttle_.share() == 1; ++ms) (void)Flood(1, 6);
  (void)Flood(2100, 6);
  ASSERT_LT(throttle_.share(), 1);
  EXPECT_FALSE(throttle_.IsOld(milliseconds(500), now_));
  stands_ = true, obey_ = false;
  (void)Flood(100, 6);
  EXPECT_TRUE(throttle_.IsOld(milliseconds(21), now_));
  stands_ = false, obey_ = true;
  (void)Flood(300, 6);
  EXPECT_FALSE(throttle_.IsOld(milliseconds(500), now_));
}

/// What came while it stood would make all calls late until it is done.
TEST_F(ThrottledLight, AndAtOnceWhereItStoodForAMoment) {
  for (int ms = 0; ms < 1000 && throttle_.share() == 1; ++ms) (void)Flood(1, 6);
  (void)Flood(500, 6);
  EXPECT_FALSE(throttle_.IsOld(milliseconds(500), now_));
  stands_ = true;
  (void)Flood(12, 6);
  EXPECT_FALSE(throttle_.IsOld(milliseconds(500), now_)) << "not for so short a moment";
  (void)Flood(28, 6);
  EXPECT_TRUE(throttle_.IsOld(milliseconds(3), now_));
  EXPECT_FALSE(throttle_.IsOld(milliseconds(2), now_));
  stands_ = false;
  (void)Flood(300, 6);
  EXPECT_FALSE(throttle_.IsOld(milliseconds(500), now_));
}

/// Else of who does not hold back all calls would be old.
TEST_F(ThrottledLight, ButNotSoonWhereTooManyCome) {
  obey_ = false;
  for (int ms = 0; ms < 1000 && throttle_.share() == 1; ++ms) (void)Flood(1, 6);
  (void)Flood(251, 6);
  for (int ms = 0; ms < 1700; ++ms) {
    (void)Flood(1, 6);
    ASSERT_LT(throttle_.share(), 1);
    ASSERT_FALSE(throttle_.IsOld(milliseconds(500), now_)) << ms;
  }
  (void)Flood(100, 6);
  EXPECT_TRUE(throttle_.IsOld(milliseconds(21), now_)) << "two seconds later";
}

/// What comes all at once while the server does what it can is no reason.
TEST_F(ThrottledLight, NorWhereManyComeAtOnce) {
  for (int ms = 0; ms < 1000 && throttle_.share() == 1; ++ms) (void)Flood(1, 6);
  (void)Flood(500, 6);
  obey_ = false;
  (void)Flood(20, 0);
  Come(800);
  for (int ms = 0; ms < 20; ++ms) {
    (void)Flood(1, 4);
    ASSERT_LT(throttle_.share(), 1);
    ASSERT_FALSE(throttle_.IsOld(milliseconds(500), now_)) << ms;
  }
}

/// Or once it had begun it would go on.
TEST_F(ThrottledLight, NorWhereTheOldWereRefused) {
  for (int ms = 0; ms < 1000 && throttle_.share() == 1; ++ms) (void)Flood(1, 6);
  (void)Flood(500, 6);
  stands_ = true, obey_ = false;
  (void)Flood(40, 6);
  ASSERT_TRUE(throttle_.IsOld(milliseconds(6), now_));
  const auto refuse = [&] {
    (void)Flood(1, 6);
    for (int calls = 0; calls < kDonePerMs; ++calls, waiting_.pop_front())
      if (!throttle_.IsOld(milliseconds(100), now_)) return false;
    return true;
  };
  for (int ms = 0; refuse(); ++ms) ASSERT_LT(ms, 300);
  stands_ = false;
  for (int ms = 0; ms < 300; ++ms) {
    (void)Flood(1, 6);
    ASSERT_GT(waiting_.size(), 10 * kDonePerMs) << "twice `late`";
    ASSERT_FALSE(throttle_.IsOld(milliseconds(500), now_)) << ms;
  }
}

TEST_F(ThrottledLight, WhoseMessageIsStillToComeIsRefusedWhereItWouldBeOld) {
  (void)Flood(100, 1);
  EXPECT_FALSE(throttle_.WillBeOld(now_)) << "there are not too many";
  for (int ms = 0; ms < 1000 && throttle_.share() == 1; ++ms) (void)Flood(1, 6);
  stands_ = true;
  (void)Flood(40, 6);
  const auto hold = throttle_.WillBeOld(now_);
  ASSERT_TRUE(hold);
  EXPECT_GE(hold->waits, milliseconds(20));
  EXPECT_GT(hold->hold, milliseconds(0));
  stands_ = false, obey_ = false;
  (void)Flood(251, 6);
  EXPECT_FALSE(throttle_.WillBeOld(now_)) << "by now all know";
}

TEST_F(ThrottledLight, WhoseCallsWaitBecauseOfAnotherPeersAreNot) {
  const auto few = std::make_shared<PeerWaits>(), many = std::make_shared<PeerWaits>();
  for (Connection& one : connections_) one.turn->of_peer = &one == &connections_[0] ? few : many;
  connections_[1].turn->unread = 200;
  (void)Flood(100, 1);
  for (int ms = 0; ms < 1000 && throttle_.share() == 1; ++ms) (void)Flood(1, 6);
  stands_ = true;
  (void)Flood(40, 6);
  connections_[0].turn->waiting = 0;
  now_ += milliseconds(200);  // some of its own waited
  throttle_.Look(now_);
  for (const size_t i : {0, 1}) {
    const auto& turn = connections_[i].turn;
    EXPECT_EQ(throttle_.IsOld(milliseconds(100), now_, turn.get()).has_value(), i == 1);
    EXPECT_EQ(throttle_.WillBeOld(now_, turn.get()).has_value(), i == 1);
    EXPECT_EQ(throttle_.Refuses(now_, turn.get()).has_value(), i == 1);
  }
  EXPECT_FALSE(throttle_.Asks(connections_[0].turn, now_));
}

TEST_F(ThrottledLight, NorWhereHardlyAnythingWaitsAnyMore) {
  (void)Flood(100, 1);
  for (int ms = 0; ms < 1000 && throttle_.share() == 1; ++ms) (void)Flood(1, 6);
  waiting_.clear();
  (void)Flood(60, 6);
  ASSERT_LT(throttle_.share(), 1);
  EXPECT_FALSE(throttle_.WillBeOld(now_));
}

/// What a server can do is not what it did while it told callers that their calls were too old.
TEST_F(ThrottledLight, RefusingTheOldDoesNotMakeAServerSlow) {
  (void)Flood(1000, 2);
  for (int ms = 0; ms < 100 && throttle_.share() == 1; ++ms) (void)Flood(1, 6);
  stands_ = true;
  for (int ms = 0; ms < 240; ++ms) {
    (void)Flood(1, 6);
    for (int calls = 0; calls < kDonePerMs && !waiting_.empty(); ++calls, waiting_.pop_front())
      ASSERT_TRUE(throttle_.IsOld(milliseconds(100), now_));
  }
  now_ += milliseconds(5);
  throttle_.Look(now_, 1000);
  const auto hold = throttle_.WillBeOld(now_);
  ASSERT_TRUE(hold);
  EXPECT_LE(hold->waits, milliseconds((1000 + static_cast<int>(waiting_.size())) * 11 / 10 / kDonePerMs));
}

/// What is on its way of light calls is what is read at a time.
TEST_F(ThrottledLight, NobodyIsAskedBeforeHisTurnForWhatIsOnItsWay) {
  (void)Flood(1000, 4);
  ASSERT_LT(throttle_.share(), 1);
  const auto youngest = std::ranges::max_element(connections_, {}, [&](const Connection& each) {
    return now_ < each.turn->until.load() ? 0 : each.turn->order.load();
  });
  ASSERT_GE(now_, youngest->turn->until.load());
  youngest->turn->waiting += 1000;  // it may be asked
  EXPECT_FALSE(throttle_.Asks(youngest->turn, now_, 100000));
}

/// As large a part of new connections is asked as of all, but not while there is nothing else to do.
TEST_F(ThrottledLight, WhoComesNewlyIsNotAskedWhereNothingWaits) {
  (void)Flood(1000, 4);
  ASSERT_LT(throttle_.share(), 1);
  waiting_.clear();
  struct Caller {
    Throttle* throttle;
    std::shared_ptr<Turn> turn = std::make_shared<Turn>();
    Throttle::Passage passage{throttle, &turn->waiting};
  };
  const auto asks = [&](Caller& caller) { return throttle_.Asks(caller.turn, now_).has_value(); };
  const auto asked = [&] {
    int asked = 0;
    for (int i = 0; i < 16; ++i) {
      Caller alone(&throttle_);
      asked += asks(alone);
    }
    return asked;
  };
  std::deque<Caller> together;
  for (int i = 0; i < 16; ++i) together.emplace_back(&throttle_);
  now_ += milliseconds(6);
  throttle_.Look(now_);
  EXPECT_GE(std::ranges::count_if(together, asks), 4);
  together.clear();
  EXPECT_EQ(asked(), 0);
  {
    Caller runs(&throttle_);
    runs.passage.Begins();
    EXPECT_GE(asked(), 4);
  }
  now_ += milliseconds(6);
  throttle_.Look(now_, 2 * kDonePerMs);
  ASSERT_LT(throttle_.share(), 1);
  EXPECT_GE(asked(), 4) << "so much lay unread that it takes two milliseconds";
  now_ += milliseconds(3);
  EXPECT_EQ(asked(), 0);
}

/// Where the share goes up again those who were told to hold back do so for a while. Who took that for little
/// to do would let too many come in the end.
TEST_F(ThrottledLight, WhoStillHoldsBackIsNotTakenForNobody) {
  (void)Flood(2000, 6);
  stands_ = true;
  (void)Flood(60, 6);
  stands_ = false;
  (void)Flood(150, 6);
  const Sum sum = Flood(1500, 6);
  EXPECT_LE(sum.longest, milliseconds(30));
  EXPECT_GE(sum.done, 1500 * kDonePerMs * 85 / 100);
}

class ThrottledOnSockets : public ThrottledSockets {
 protected:
  ThrottledOnSockets() : ThrottledSockets(32) {}
};

/// The longer calls wait the later a connection is told, and the more it sends until then.
TEST_F(ThrottledOnSockets, ManyAreServedSoonHoweverOftenTooManyCome) {
  for (const int times : {2, 3, 5, 2, 3, 5}) {
    (void)Excess(1000, 1);
    const Sum first = Excess(300, 2 * times);
    EXPECT_LE(first.longest, milliseconds(30)) << times;
    EXPECT_GE(first.done, 300 * kDonePerMs * 4 / 10) << times;
    const Sum then = Excess(3000, 2 * times);
    EXPECT_LE(then.longest, milliseconds(30)) << times;
    EXPECT_GE(then.done, 3000 * kDonePerMs * 9 / 10) << times;
  }
}

/// Most of a server's cores are others' for a moment, at half of what it can do.
TEST_F(ThrottledOnSockets, WhoLacksMostOfHisCoresForAMomentAsksNobody) {
  for (const double left : {0.0, 0.1, 0.2, 0.3}) {
    (void)Excess(2000, 1);
    speed_ = left;
    const Sum moment = Excess(75, 1);
    speed_ = 1;
    const Sum then = Excess(500, 1);
    EXPECT_EQ(moment.asked + then.asked, 0) << left;
    EXPECT_EQ(moment.done + then.done, 5750) << left;
  }
}

}  // namespace
}  // namespace tilewire::rpc
