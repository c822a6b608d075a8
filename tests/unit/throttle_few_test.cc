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

TEST_P(ThrottledFew, HaveSomethingToDoAndWaitForNoLongerThanMany) {
  for (const int each : {4, 6}) {
    (void)Flood(1000, each);
    const Sum sum = Flood(3000, each);
    EXPECT_GE(sum.done, 3000 * kDonePerMs * 96 / 100) << each;
    EXPECT_LE(sum.longest, milliseconds(4)) << each;
    EXPECT_GT(sum.asked, 3000 / 15) << each;
  }
}

INSTANTIATE_TEST_SUITE_P(Connections, ThrottledFew, ::testing::Values(8, 12, 15));

class ThrottledOthers : public ThrottledFew {};

/// What is told costs a call each time.
TEST_P(ThrottledOthers, AreAskedHalfAsOften) {
  (void)Flood(1000, 6);
  EXPECT_LE(Flood(3000, 6).asked, 3000 / 15);
}

INSTANTIATE_TEST_SUITE_P(Connections, ThrottledOthers, ::testing::Values(16, 32));

class ThrottledHeavy : public Throttled {};

TEST_F(ThrottledHeavy, AreAskedAsSeldomHoweverFewTheyAre) {
  (void)Flood(1000, 6);
  EXPECT_LE(Flood(3000, 6).asked, 3000 / 15);
}

class ThrottledFewOnSockets : public ThrottledSockets {
 protected:
  ThrottledFewOnSockets() : ThrottledSockets(8) { reply_ = milliseconds(2); }
};

/// Or those who come again send beside those who do not know yet that they are to hold back.
TEST_F(ThrottledFewOnSockets, EightAreServedSoonThoughEachSendsAllThatCanBeDone) {
  for (const int times : {3, 5, 8}) {
    (void)Excess(1000, 1);
    (void)Excess(1000, 2 * times);
    const Sum sum = Excess(3000, 2 * times);
    EXPECT_GE(sum.done, 3000 * kDonePerMs * 93 / 100) << times;
    EXPECT_LE(sum.longest, milliseconds(10)) << times;
  }
}

class ThrottledVeryFew : public ThrottledFew {};

/// Turns that get longer and longer would leave nobody to send.
TEST_P(ThrottledVeryFew, DoNotHoldBackForTooLong) {
  for (const int each : {4, 6, 10}) {
    (void)Flood(1000, each);
    EXPECT_GE(Flood(3000, each).done, 3000 * kDonePerMs * 80 / 100) << each;
  }
}

INSTANTIATE_TEST_SUITE_P(Connections, ThrottledVeryFew, ::testing::Values(3, 4, 5, 6, 7));

}  // namespace
}  // namespace tilewire::rpc
