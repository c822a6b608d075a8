// When calls are too many.
#include "server/rpc/calls/excess.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tilewire::rpc {
namespace {

/// Of a server that does `rate_` calls a second, at a look every 5 ms.
class ExcessTest : public ::testing::Test {
 protected:
  static constexpr double kLook = 5e-3;
  explicit ExcessTest(const Excess& excess) : excess_(excess) {}
  double done() const { return rate_ * kLook; }

  /// A look, after `calls` came; as many wait as are not done by then.
  bool Comes(double calls) {
    const double before = waiting_;
    waiting_ = std::max(0.0, waiting_ + calls - done());
    const CallsWindow now{
        .seconds = kLook, .came = calls, .done = before + calls - waiting_, .idle = waiting_ == 0};
    const CallsWindow both{.seconds = 2 * kLook,
                           .came = calls + last_.came,
                           .done = now.done + last_.done,
                           .idle = now.idle || last_.idle};
    last_ = now;
    return excess_.Begins({.waiting = waiting_,
                           .unread = unread_ * waiting_,
                           .running = running_,
                           .waits = waiting_ / rate_,
                           .rate = rate_,
                           .full = full_,
                           .now = now,
                           .both = both});
  }
  /// So many at once, after nobody called; then as many as were done. Whether that was too many.
  bool ComeAtOnce(double calls) {
    bool many = false;
    Rest(0.05);
    for (const double part : {0.4 * calls, 0.6 * calls, done(), done()}) many |= Comes(part);
    return many;
  }
  /// As many times what is done at each look: how many of these until it is too many; 1000: it never is.
  int LooksUntilTooMany(double times) {
    Rest(0.5);
    int looks = 1;
    while (looks < 1000 && !Comes(times * done())) ++looks;
    return looks;
  }
  /// So many wait, and others are refused: how many looks until it is too many; 10: it never is.
  int LooksWithoutAPlace(double waiting, double running) {
    Rest(0.5);
    running_ = running;
    EXPECT_FALSE(Comes(done() + waiting));
    full_ = true;
    int looks = 1;
    while (looks < 10 && !Comes(done())) ++looks;
    full_ = false;
    return looks;
  }
  void Rest(double seconds) {
    for (; seconds > 0; seconds -= kLook) EXPECT_FALSE(Comes(0));
  }

  Excess excess_;
  double rate_ = 20'000, waiting_ = 0, unread_ = 1, running_ = 0;
  bool full_ = false;
  CallsWindow last_;
};

class ExcessOfLight : public ExcessTest {
 protected:
  ExcessOfLight() : ExcessTest(Excess(5e-3, 256)) {}
};

TEST_F(ExcessOfLight, ACrowdMayComeAtOnce) {
  EXPECT_FALSE(ComeAtOnce(300));
  EXPECT_TRUE(ComeAtOnce(800));
}

TEST_F(ExcessOfLight, ThreeTimesWhatCanBeDoneIsTooManyAtTheSecondLook) {
  EXPECT_EQ(LooksUntilTooMany(3), 2);
}

TEST_F(ExcessOfLight, AThirdMoreIsOnceThatIsACrowd) {
  EXPECT_EQ(LooksUntilTooMany(1.3), 256 / 30 + 2) << "two looks in a row";
}

TEST_F(ExcessOfLight, SlowOnesAreBeforeTheyAreACrowd) {
  rate_ = 4000, unread_ = 0;
  const int looks = LooksUntilTooMany(1.5);
  EXPECT_GT(waiting_, 40e-3 * rate_);
  EXPECT_LT(waiting_, 256);
  EXPECT_LT(looks, 25);
}

/// As few callers as once more have somebody each to wait for, after the server stood: nothing was done in
/// all that time, which is all that is known of how fast it is.
TEST_F(ExcessOfLight, AFewAreNotHoweverSlowItSeems) {
  rate_ = 4, unread_ = 0;
  const CallsWindow stood{.seconds = 1, .came = 4, .done = 4, .idle = false};
  const auto begins = [&](double waiting) {
    bool many = false;
    for (int i = 0; i < 3; ++i) {
      const CallsWindow now{.seconds = kLook, .came = 2, .done = 1, .idle = false};
      many |= excess_.Begins({.waiting = waiting + i,
                              .waits = waiting / rate_,
                              .rate = rate_,
                              .now = i == 0 ? stood : now,
                              .both = i == 0 ? stood : now});
    }
    return many;
  };
  EXPECT_FALSE(begins(1));
  EXPECT_FALSE(begins(4));
  EXPECT_TRUE(begins(20));
}

TEST_F(ExcessOfLight, HardlyMoreThanCanBeDoneAreNot) {
  EXPECT_EQ(LooksUntilTooMany(1.05), 1000);
}

TEST_F(ExcessOfLight, NorThoseBesideWhichAsManyRun) {
  running_ = 1000;
  EXPECT_EQ(LooksUntilTooMany(1.3), 1500 / 30 + 2);
}

TEST_F(ExcessOfLight, WhoFindsNoPlaceTwiceIsTooMany) {
  EXPECT_EQ(LooksWithoutAPlace(10, 0), 2);
}

/// As where dozens of long calls run at a time: no more wait than run, since the others are refused.
TEST_F(ExcessOfLight, HoweverManyRunUnlessHardlyAnyWait) {
  EXPECT_EQ(LooksWithoutAPlace(50, 100), 10);
  EXPECT_EQ(LooksWithoutAPlace(51, 100), 2);
}

TEST_F(ExcessOfLight, AsManyAsOnceWereForAMomentAreACrowd) {
  EXPECT_TRUE(ComeAtOnce(800));
  excess_.Ends(0.4);
  EXPECT_FALSE(ComeAtOnce(800));
  Rest(10);
  EXPECT_TRUE(ComeAtOnce(800)) << "that is long ago";
}

TEST_F(ExcessOfLight, ButNotAsManyAsWereForLong) {
  EXPECT_TRUE(ComeAtOnce(800));
  excess_.Ends(1.4);
  EXPECT_TRUE(ComeAtOnce(800));
}

TEST_F(ExcessOfLight, NorSoManyThatTheyWaitForVeryLong) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(ComeAtOnce(2000)) << "who waits 100 ms";
    excess_.Ends(0.1);
  }
}

TEST_F(ExcessOfLight, AsManyAsUsuallyWaitAreACrowd) {
  while (waiting_ < 600) ASSERT_FALSE(Comes(1.05 * done())) << "callers who come one by one";
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(Comes(done()));
  EXPECT_FALSE(ComeAtOnce(800));
  EXPECT_TRUE(ComeAtOnce(1800));
}

TEST_F(ExcessOfLight, WhatWaitsAfterNobodyCalledForLongIsNotUsual) {
  const CallsWindow pause{.seconds = 10, .came = 700, .done = 100, .idle = true};
  EXPECT_FALSE(excess_.Begins(
      {.waiting = 600, .unread = 600, .waits = 30e-3, .rate = rate_, .now = pause, .both = pause}));
  EXPECT_TRUE(ComeAtOnce(800));
}

class ExcessOfHeavy : public ExcessTest {
 protected:
  ExcessOfHeavy() : ExcessTest(Excess(20e-3, 0)) { rate_ = 2000; }
};

/// The first look follows one at which nobody waited, and does not count.
TEST_F(ExcessOfHeavy, FourLooksHaveToSaySoWhereNobodyReadThemElseTwo) {
  EXPECT_EQ(LooksUntilTooMany(3), 1 + 4);
  waiting_ = 0, unread_ = 0;
  EXPECT_EQ(LooksUntilTooMany(3), 1 + 2);
}

}  // namespace
}  // namespace tilewire::rpc
