// Light calls by few connections: one more of them that sends, or one less, is a large part of what can be
// done.
#include <chrono>

#include "tests/unit/throttled.h"

namespace tilewire::rpc {
namespace {

using std::chrono::milliseconds;

class ThrottledFew : public Throttled, public ::testing::WithParamInterface<int> {
 protected:
  ThrottledFew() : Throttled(GetParam(), milliseconds(5), 256) {}
};

TEST_P(ThrottledFew, WaitForNoLongerThanManyAndHaveMostlySomethingToDo) {
  for (const int each : {4, 6}) {
    (void)Flood(1000, each);
    const Sum sum = Flood(3000, each);
    EXPECT_GE(sum.done, 3000 * kDonePerMs * (GetParam() < 8 ? 80 : 90) / 100) << each;
    EXPECT_LE(sum.longest, milliseconds(2)) << each;
  }
}

/// What is told costs a call each time.
TEST_P(ThrottledFew, AreAskedInTurnsThatAreShortButNotShorter) {
  (void)Flood(1000, 6);
  const int asked = Flood(3000, 6).asked;
  EXPECT_GT(asked, 3000 / 9);
  EXPECT_LE(asked, 3000 / 8 + 3);
}

INSTANTIATE_TEST_SUITE_P(Connections, ThrottledFew, ::testing::Values(4, 5, 6, 7, 8, 12, 15, 16, 32));

class ThrottledHeavy : public Throttled {};

TEST_F(ThrottledHeavy, AreAskedHalfAsOftenHoweverFewTheyAre) {
  (void)Flood(1000, 6);
  EXPECT_LE(Flood(3000, 6).asked, 3000 / 15);
}

class ThrottledFewOnSockets : public ThrottledSockets {
 protected:
  ThrottledFewOnSockets() : ThrottledSockets(8) { reply_ = milliseconds(2); }
};

/// Or those who come again send beside those who do not know yet that they are to hold back.
TEST_F(ThrottledFewOnSockets, EightAreServedSoonThoughEachSendsMostOfWhatCanBeDone) {
  for (const int times : {2, 3, 5}) {
    (void)Excess(1000, 1);
    (void)Excess(1000, 2 * times);
    const Sum sum = Excess(3000, 2 * times);
    EXPECT_GE(sum.done, 3000 * kDonePerMs * (times < 5 ? 93 : 80) / 100) << times;
    EXPECT_LE(sum.longest, milliseconds(3)) << times;
  }
}

TEST_F(ThrottledFewOnSockets, EightAreServedThoughEachSendsAllThatCanBeDone) {
  (void)Excess(1000, 1);
  (void)Excess(1000, 16);
  const Sum sum = Excess(3000, 16);
  EXPECT_GE(sum.done, 3000 * kDonePerMs * 85 / 100);
  EXPECT_LE(sum.longest, milliseconds(7));
}

class ThrottledVeryFew : public ThrottledFew {};

/// Turns that get longer and longer would leave nobody to send.
TEST_P(ThrottledVeryFew, DoNotHoldBackForTooLong) {
  (void)Flood(1000, 10);
  const Sum sum = Flood(3000, 10);
  EXPECT_GE(sum.done, 3000 * kDonePerMs * 68 / 100);
  EXPECT_LE(sum.longest, milliseconds(17));
}

INSTANTIATE_TEST_SUITE_P(Connections, ThrottledVeryFew, ::testing::Values(3, 4, 5, 6, 7));

}  // namespace
}  // namespace tilewire::rpc
