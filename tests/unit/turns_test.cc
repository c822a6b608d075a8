// Which connections hold back, and for how long, where a part of them is to send.
#include "server/rpc/calls/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

namespace tilewire::rpc {
namespace {

using std::chrono::milliseconds;

class TurnsOf : public ::testing::Test {
 protected:
  explicit TurnsOf(int connections = 8) {
    for (int i = 0; i < connections; ++i) connections_.push_back(std::make_shared<Turn>());
  }
  /// A call of each that does not hold back, and then a look.
  void Look(const Turns::Plan& plan) {
    for (const auto& one : connections_)
      if (now_ >= one->until.load()) turns_.Calls(one, now_);
    sends_ = turns_.Count(now_).sends();
    turns_.Choose(now_, plan);
  }
  std::optional<Clock::duration> Asks(int connection) {
    return turns_.Asks(connections_[static_cast<size_t>(connection)].get(), now_);
  }

  Turns turns_;
  std::vector<std::shared_ptr<Turn>> connections_;
  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
  double sends_ = 0;
};

TEST_F(TurnsOf, WhoSentForLongestIsAskedFirst) {
  Look({.share = 0.5, .step = milliseconds(16)});
  for (int i = 7; i >= 0; --i) EXPECT_EQ(Asks(i).has_value(), i < 4) << i;
  now_ += milliseconds(5);
  Look({.share = 0.5, .step = milliseconds(16)});
  EXPECT_EQ(sends_, 0.5);
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(Asks(i)) << i;
}

TEST_F(TurnsOf, NobodyIsWhereAllMaySend) {
  Look({.share = 1, .step = milliseconds(16)});
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(Asks(i)) << i;
}

TEST_F(TurnsOf, TheyComeAgainOneByOne) {
  Look({.share = 0.5, .step = milliseconds(16)});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Asks(i), milliseconds(16 * (i + 1))) << i;
}

TEST_F(TurnsOf, NoSoonerThanAllKnow) {
  Look({.share = 0.5, .step = milliseconds(16), .least = milliseconds(100)});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Asks(i), milliseconds(100 + 16 * i)) << i;
}

TEST_F(TurnsOf, AndWithinHalfASecond) {
  Look({.share = 0.1, .step = std::chrono::seconds(1), .least = std::chrono::seconds(2)});
  EXPECT_EQ(Asks(0), milliseconds(512));
  EXPECT_EQ(Asks(1), milliseconds(512));
}

TEST_F(TurnsOf, ThoseOfWhoseCallsFewWaitAreNot) {
  connections_[2]->waiting = 5;
  Look({.share = 0.5, .step = milliseconds(16), .waiting = 5});
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Asks(i).has_value(), i == 2) << i;
}

class TurnsOfPeers : public TurnsOf {
 protected:
  /// Of eight connections the first six are one peer's, of whose calls 120 wait, and the others another's.
  TurnsOfPeers() {
    for (size_t i = 0; i < connections_.size(); ++i) {
      connections_[i]->of_peer = i < 6 ? many_ : few_;
      (i % 2 == 0 ? connections_[i]->waiting : connections_[i]->unread) = i < 6 ? 20 : 3;
    }
  }
  const std::shared_ptr<PeerWaits> many_ = std::make_shared<PeerWaits>(),
                                   few_ = std::make_shared<PeerWaits>();
};

TEST_F(TurnsOfPeers, OfWhoseCallsFewWaitNobodyIsAsked) {
  Look({.share = 0.1, .step = milliseconds(16)});
  EXPECT_EQ(many_->lately, 120);
  EXPECT_EQ(few_->lately, 6);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(turns_.IsOfFew(*connections_[static_cast<size_t>(i)]), i >= 6) << i;
  for (int i = 7; i >= 0; --i) EXPECT_EQ(Asks(i).has_value(), i < 6) << i;
  connections_[7]->waiting = 40;
  EXPECT_FALSE(turns_.IsOfFew(*connections_[7])) << "by now it has many";
}

TEST_F(TurnsOfPeers, WhoHadManyAMomentAgoHasNotFew) {
  Look({.share = 0.1, .step = milliseconds(16)});
  for (size_t i = 0; i < 6; ++i) connections_[i]->waiting = connections_[i]->unread = 0;
  now_ += milliseconds(4);
  Look({.share = 0.1, .step = milliseconds(16)});
  EXPECT_NEAR(many_->lately, 109, 2) << "of 40 ms";
  EXPECT_TRUE(turns_.IsOfFew(*connections_[7]));
  now_ += milliseconds(200);
  Look({.share = 0.1, .step = milliseconds(16)});
  EXPECT_FALSE(turns_.IsOfFew(*connections_[7])) << "of whose calls most wait";
}

TEST_F(TurnsOfPeers, WhoWasAskedAndHasFewIsNotToldAgain) {
  for (const auto& connection : connections_) connection->of_peer = many_;
  Look({.share = 0.1, .step = milliseconds(64)});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Asks(i));
  connections_[3]->of_peer = few_, connections_[3]->unread = 1;
  now_ += milliseconds(100);
  Look({.share = 0.1, .step = milliseconds(64)});
  EXPECT_FALSE(Asks(3));
  EXPECT_TRUE(Asks(2));
}

TEST_F(TurnsOf, WhoDoesNotHoldBackIsToldAgainForTheRest) {
  Look({.share = 0.1, .step = milliseconds(64)});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Asks(i));
  now_ += milliseconds(99);
  EXPECT_FALSE(Asks(3)) << "perhaps it does not know yet";
  now_ += milliseconds(1);
  EXPECT_EQ(Asks(3), milliseconds(4 * 64 - 100));
  EXPECT_FALSE(Asks(3));
}

TEST_F(TurnsOf, WhoCallsNoMoreCountsNoMore) {
  Look({.share = 0.5, .step = milliseconds(16)});
  ASSERT_TRUE(Asks(0));
  const auto all = connections_;  // they stay, and are silent
  connections_.resize(2);
  now_ += milliseconds(300);
  Look({.share = 0.5, .step = milliseconds(16)});
  EXPECT_FALSE(Asks(0)) << "of two one may send, and this one has come again";
  EXPECT_TRUE(Asks(1));
  now_ += milliseconds(5);
  Look({.share = 0.5, .step = milliseconds(16)});
  EXPECT_EQ(sends_, 0.5);
}

TEST_F(TurnsOf, OfThoseWhoseCallsWaitNoLargerPartIsAskedThanOfAll) {
  connections_[2]->waiting = connections_[5]->waiting = 100;
  Look({.share = 0.5, .step = milliseconds(16), .waiting = 10});
  int asked = 0;
  for (int i = 0; i < 8; ++i) asked += Asks(i).has_value();
  EXPECT_EQ(asked, 1);
}

TEST_F(TurnsOf, WhoHeldBackForLongIsNotTakenForGone) {
  Look({.share = 0.5, .step = milliseconds(16), .least = milliseconds(400)});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Asks(i));
  now_ += milliseconds(460);
  for (int i = 4; i < 8; ++i) EXPECT_FALSE(turns_.Calls(connections_[static_cast<size_t>(i)], now_));
  EXPECT_EQ(turns_.Count(now_).send, 8);
  for (int i = 0; i < 4; ++i)
    EXPECT_FALSE(turns_.Calls(connections_[static_cast<size_t>(i)], now_)) << "known";
  now_ += milliseconds(300);
  EXPECT_EQ(turns_.Count(now_).send, 0);
}

class TurnsOfMany : public TurnsOf {
 protected:
  TurnsOfMany() : TurnsOf(600) {}
};

TEST_F(TurnsOfMany, ComeAgainOneByOneToo) {
  Look({.share = 0.5, .step = milliseconds(16)});
  int asked = 0;
  Clock::duration longest{};
  for (int i = 0; i < 600; ++i)
    if (const auto hold = Asks(i)) ++asked, longest = std::max(longest, *hold);
  EXPECT_EQ(asked, 300);
  EXPECT_NEAR(std::chrono::duration<double>(longest).count(), 0.256, 0.005);
}

TEST_F(TurnsOf, ThoseThatAreGoneCountNoMore) {
  Look({.share = 0.5, .step = milliseconds(16)});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Asks(i));
  connections_.erase(connections_.begin(), connections_.begin() + 4);
  now_ += milliseconds(1);
  Look({.share = 0.5, .step = milliseconds(16)});
  EXPECT_EQ(sends_, 1);
}

TEST_F(TurnsOf, NewOnesAreAskedAsOften) {
  Look({.share = 0.25, .step = milliseconds(16)});
  int asked = 0;
  for (int i = 0; i < 100; ++i) {
    const auto one = std::make_shared<Turn>();
    asked += turns_.Asks(one.get(), now_, turns_.Calls(one, now_)).has_value();
    EXPECT_FALSE(turns_.Calls(one, now_)) << "it is new no more";
  }
  EXPECT_NEAR(asked, 75, 1);
}

/// Of eight connections a third is two and three in turns.
class TurnsInTheMean : public TurnsOf, public ::testing::WithParamInterface<double> {};

TEST_P(TurnsInTheMean, AsManySendAsAreTo) {
  double mean = 0;
  std::vector<double> each(8);
  constexpr int kLooks = 1000;
  for (int look = 0; look < 100 + kLooks; ++look, now_ += milliseconds(5)) {
    Look({.share = GetParam(), .step = milliseconds(16)});
    for (int i = 0; i < 8; ++i)
      if (now_ >= connections_[static_cast<size_t>(i)]->until.load() && !Asks(i) && look >= 100)
        mean += 1.0 / (8 * kLooks), each[static_cast<size_t>(i)] += 1.0 / kLooks;
  }
  EXPECT_NEAR(mean, GetParam(), 0.05);
  for (const double one : each) EXPECT_NEAR(one, GetParam(), 0.1) << "each as much as the others";
}

INSTANTIATE_TEST_SUITE_P(Shares, TurnsInTheMean, ::testing::Values(0.2, 1.0 / 3, 0.5, 0.8));

}  // namespace
}  // namespace tilewire::rpc
