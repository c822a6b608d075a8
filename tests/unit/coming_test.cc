// Calls for bulk jobs whose messages are still on their way: when there are too many, and which are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "server/rpc/calls/throttle.h"

namespace tilewire::rpc {
namespace {

using std::chrono::milliseconds;

/// A server that does ten such calls in five milliseconds; a call is late after a hundred.
class Coming : public ::testing::Test {
 protected:
  /// So many looks, after each of which `more` wait for their messages to be read, up to `most`.
  void Go(int looks, double more, double most) {
    for (int i = 0; i < looks; ++i) {
      now_ += milliseconds(5);
      for (int call = 0; call < 10; ++call) Throttle::Passage(&throttle_, nullptr).Begins();
      unread_ = std::min(unread_ + more, most);
      const Throttle::Passage last(&throttle_, nullptr);
      throttle_.Look(now_, unread_);
    }
  }
  /// Of so many that come now, those that are let in before one is refused.
  int LetIn(int calls) {
    for (int i = 0; i < calls; ++i)
      if (throttle_.Refuses(now_)) return i;
    return calls;
  }

  Throttle throttle_{milliseconds(100)};
  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
  double unread_ = 0;
};

TEST_F(Coming, NoneIsRefusedWhereThereWereNeverTooMany) {
  Go(100, 0, 0);
  EXPECT_EQ(LetIn(10'000), 10'000);
}

TEST_F(Coming, FewAreNoReason) {
  Go(100, 0, 0);
  Go(20, 3, 15);
  EXPECT_EQ(throttle_.share(), 1);
  Go(20, 0, 15);
  EXPECT_EQ(throttle_.share(), 1);
}

TEST_F(Coming, ManyAre) {
  Go(100, 0, 0);
  Go(40, 20, 1e9);
  EXPECT_LT(throttle_.share(), 0.8);
}

TEST_F(Coming, AreRefusedWhereTheyWouldWaitForHalfOfLate) {
  Go(100, 0, 0);
  Go(40, 20, 1e9);
  ASSERT_LT(throttle_.share(), 1);
  const auto hold = throttle_.Refuses(now_);
  ASSERT_TRUE(hold);
  EXPECT_GT(hold->waits, milliseconds(50));
  EXPECT_GE(hold->hold, hold->waits) << "by then those before it are done";
  unread_ = 0;
  Go(1, 0, 0);  // what waited is read
  const int let_in = LetIn(10'000);
  EXPECT_GT(let_in, 60) << "fifty milliseconds of work";
  EXPECT_LT(let_in, 140);
}

TEST_F(Coming, AndForAWhileAfter) {
  Go(100, 0, 0);
  Go(40, 20, 1e9);
  unread_ = 0;
  for (int look = 0; look < 1000 && throttle_.share() < 1; ++look) Go(1, 0, 0);
  ASSERT_EQ(throttle_.share(), 1);
  EXPECT_LT(LetIn(10'000), 10'000);
  now_ += std::chrono::seconds(3);
  EXPECT_EQ(LetIn(10'000), 10'000);
}

/// Refused or not, it came: the share would become larger with each one that is refused.
TEST_F(Coming, ThoseRefusedCountAsCome) {
  Go(100, 0, 0);
  Go(40, 20, 1e9);
  unread_ = 100;
  Go(100, 0, 100);
  const double share = throttle_.share();
  for (int look = 0; look < 100; ++look) {
    Go(1, 0, 100);
    for (int call = 0; call < 40; ++call) (void)throttle_.Refuses(now_);
  }
  EXPECT_LT(throttle_.share(), share);
}

}  // namespace
}  // namespace tilewire::rpc
