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
    EXPECT_GT(sum.asked, 3000 / 16 + 1) << each;
    EXPECT_LE(sum.asked, 3000 / 8 + 1) << each;
  }
}

INSTANTIATE_TEST_SUITE_P(Connections, ThrottledFew, ::testing::Values(5, 8, 15));

class ThrottledOthers : public ThrottledFew {};

/// What is told costs a call each time; and very few would know only when their turn is over.
TEST_P(ThrottledOthers, AreAskedHalfAsOften) {
  (void)Flood(1000, 6);
  EXPECT_LE(Flood(3000, 6).asked, 3000 / 16 + 1);
}

INSTANTIATE_TEST_SUITE_P(Connections, ThrottledOthers, ::testing::Values(2, 4, 16, 32));

}  // namespace
}  // namespace tilewire::rpc
