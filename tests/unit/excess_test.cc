// When calls are too many, of a server that does twenty light ones a millisecond.
#include "server/rpc/calls/excess.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tilewire::rpc {
namespace {

class ExcessOfLight : public ::testing::Test {
 protected:
  static constexpr double kRate = 20'000, kLook = 5e-3, kDone = kRate * kLook;

  /// A look, after `calls` came; as many wait as are not done by then.
  bool Comes(double calls) {
    const double before = waiting_;
    waiting_ = std::max(0.0, waiting_ + calls - kDone);
    CallsWindow now{
        .seconds = kLook, .came = calls, .begun = before + calls - waiting_, .idle = waiting_ == 0};
    const CallsWindow both{.seconds = 2 * kLook,
                           .came = calls + last_.came,
                           .begun = now.begun + last_.begun,
                           .idle = now.idle || last_.idle};
    last_ = now;
    return excess_.Begins({.waiting = waiting_,
                           .unread = waiting_,
                           .waits = waiting_ / kRate,
                           .rate = kRate,
                           .now = now,
                           .both = both});
  }
  /// So many at once, after nobody called; then as many as were done. Whether that was too many.
  bool ComeAtOnce(double calls) {
    bool many = false;
    Rest(0.05);
    for (const double part : {0.4 * calls, 0.6 * calls, kDone, kDone}) many |= Comes(part);
    return many;
  }
  void Rest(double seconds) {
    for (; seconds > 0; seconds -= kLook) EXPECT_FALSE(Comes(0));
  }

  Excess excess_{5e-3, 256};
  double waiting_ = 0;
  CallsWindow last_;
};

TEST_F(ExcessOfLight, ACrowdMayComeAtOnce) {
  EXPECT_FALSE(ComeAtOnce(300));
  EXPECT_TRUE(ComeAtOnce(800));
}

TEST_F(ExcessOfLight, ThreeTimesWhatCanBeDoneIsTooManyAtTheSecondLook) {
  Rest(0.1);
  EXPECT_FALSE(Comes(3 * kDone));
  EXPECT_TRUE(Comes(3 * kDone));
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
  while (waiting_ < 600) ASSERT_FALSE(Comes(1.04 * kDone)) << "callers who come one by one";
  for (int i = 0; i < 400; ++i) ASSERT_FALSE(Comes(kDone));
  EXPECT_FALSE(ComeAtOnce(800));
  EXPECT_TRUE(ComeAtOnce(1800));
}

}  // namespace
}  // namespace tilewire::rpc
