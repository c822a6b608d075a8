// How many calls a second can be done, by what was.
#include "server/rpc/calls/done_rate.h"

#include <gtest/gtest.h>

namespace tilewire::rpc {
namespace {

class DoneRateTest : public ::testing::Test {
 protected:
  static constexpr double kLook = 2e-3;

  /// For so long `per_second` are done, and others wait or not.
  void Pass(double seconds, double per_second, bool idle) {
    for (double t = 0; t < seconds - kLook / 2; t += kLook) See(per_second * kLook, idle);
  }
  void See(double done, bool idle, double dropped = 0) {
    const CallsWindow now{.seconds = kLook, .begun = done, .done = done, .dropped = dropped, .idle = idle};
    const CallsWindow both{.seconds = 2 * kLook, .done = done + last_.done, .idle = idle || last_.idle};
    last_ = now;
    rate_.Learn(now, both, turns_);
  }
  void Busy(double seconds, double per_second) { Pass(seconds, per_second, false); }
  void Rest(double seconds, double per_second) { Pass(seconds, per_second, true); }

  DoneRate rate_;
  bool turns_ = true;

 private:
  CallsWindow last_{.idle = false};
};

TEST_F(DoneRateTest, IsWhatIsDoneWhileOthersWait) {
  EXPECT_EQ(rate_.rate(), 0);
  Busy(kLook, 20e3);
  EXPECT_DOUBLE_EQ(rate_.rate(), 20e3);
  Busy(1, 10e3);
  EXPECT_NEAR(rate_.rate(), 10e3, 10);
}

TEST_F(DoneRateTest, FallsSlowlyAndRisesSoWhileConnectionsTakeTurns) {
  Busy(0.1, 20e3);
  Busy(0.02, 10e3);
  EXPECT_GT(rate_.rate(), 15e3);
  Busy(1, 10e3);
  Busy(0.02, 20e3);
  EXPECT_LT(rate_.rate(), 13e3);
  Busy(1, 10e3);
  turns_ = false;
  Busy(0.02, 20e3);
  EXPECT_GT(rate_.rate(), 18e3);
}

TEST_F(DoneRateTest, OfFewCallsIsLearnedInATenthOfASecond) {
  Busy(0.09, 50);
  EXPECT_EQ(rate_.rate(), 0);
  Busy(0.02, 50);
  EXPECT_NEAR(rate_.rate(), 50, 5);
}

TEST_F(DoneRateTest, IsNotLearnedWhereMostAreRefusedAsOld) {
  Busy(0.1, 20e3);
  for (int i = 0; i < 50; ++i) See(8, false, 9);
  EXPECT_DOUBLE_EQ(rate_.rate(), 20e3);
  for (int i = 0; i < 50; ++i) See(8, false, 7);
  EXPECT_LT(rate_.rate(), 15e3);
}

TEST_F(DoneRateTest, IsNoLessThanWasDoneThoughNobodyWaited) {
  Busy(0.1, 20e3);
  Rest(0.012, 30e3);
  EXPECT_GE(rate_.rate(), 30e3);
  EXPECT_LT(rate_.rate(), 30.1e3);
}

TEST_F(DoneRateTest, OfAMomentInWhichIsDoneWhatCameBeforeItTellsNothing) {
  for (int before = 0; before < 6; ++before) {
    Busy(0.1, 20e3);
    Rest(before * kLook, 10e3);
    See(0, true), See(80, true);
    Rest(5 * kLook, 10e3);
    EXPECT_NEAR(rate_.rate(), 20e3, 100) << before;
  }
}

TEST_F(DoneRateTest, OfShortRestsTellsNothing) {
  Busy(0.1, 20e3);
  for (int i = 0; i < 20; ++i) {
    See(60, true);
    Busy(2 * kLook, 20e3);
  }
  EXPECT_NEAR(rate_.rate(), 20e3, 100);
}

TEST_F(DoneRateTest, OfFewCallsIsLearnedThoughNobodyWaitsNowAndThen) {
  for (int i = 0; i < 100; ++i) {
    Busy(3 * kLook, 1000);
    See(1, true);
  }
  EXPECT_NEAR(rate_.rate(), 1000, 50);
}

TEST_F(DoneRateTest, IsNoLongerKnownWhereNobodyWaitsForAWhile) {
  Busy(0.1, 20e3);
  Rest(0.19, 5e3);
  EXPECT_DOUBLE_EQ(rate_.rate(), 20e3);
  Busy(2 * kLook, 20e3);
  Rest(0.19, 5e3);
  EXPECT_DOUBLE_EQ(rate_.rate(), 20e3);
  Rest(1, 5e3);
  EXPECT_GT(rate_.rate(), 23e3);
  EXPECT_LT(rate_.rate(), 25e3);
}

TEST_F(DoneRateTest, IsHardlyMoreAfterALongTimeInWhichNobodyCalled) {
  Busy(0.1, 20e3);
  const CallsWindow hour{.seconds = 3600};
  rate_.Learn(hour, hour, turns_);
  EXPECT_LE(rate_.rate(), 1.2 * 20e3);
}

TEST_F(DoneRateTest, StaysWhereNobodyIsHeldBack) {
  turns_ = false;
  Busy(0.1, 20e3);
  Rest(5, 5e3);
  EXPECT_DOUBLE_EQ(rate_.rate(), 20e3);
}

}  // namespace
}  // namespace tilewire::rpc
