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
TEST_F(ThrottledFewOnSockets, ComeAgainNoSoonerThanOthersHoldBackHoweverMuchEachSends) {
  for (const int times : {3, 5, 8}) {
    (void)Excess(1000, 1);
    (void)Excess(1000, 2 * times);
    const Sum sum = Excess(3000, 2 * times);
    EXPECT_GE(sum.done, 3000 * kDonePerMs * 93 / 100) << times;
    EXPECT_LE(sum.longest, milliseconds(10)) << times;
  }
}

/// A turn that gets longer and longer would leave nobody to send.
class ThrottledTwo : public Throttled {
 protected:
  ThrottledTwo() : Throttled(2, milliseconds(5), 256) {}
};

TEST_F(ThrottledTwo, DoNotHoldBackForTooLong) {
  for (const int each : {4, 6}) {
    (void)Flood(1000, each);
    const Sum sum = Flood(3000, each);
    EXPECT_GE(sum.done, 3000 * kDonePerMs * 90 / 100) << each;
    EXPECT_LE(sum.longest, milliseconds(20)) << each;
  }
}

}  // namespace
}  // namespace tilewire::rpc
