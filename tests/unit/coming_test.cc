// Heavy calls whose messages are still on their way: when there are too many, and which are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "server/rpc/calls/throttle.h"

namespace tilewire::rpc {
namespace {

using std::chrono::milliseconds;

/// A server that does ten such calls in five milliseconds.
struct Server {
  explicit Server(milliseconds late = milliseconds(100)) : throttle_(late) {}
  /// So many looks, after each of which `more` wait for their messages to be read, up to `most`.
  void Go(int looks, double more, double most, int done = 10) {
    for (int i = 0; i < looks; ++i) {
      now_ += milliseconds(5);
      for (int call = 0; call < done; ++call) Throttle::Passage(&throttle_, nullptr).Begins();
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

  Throttle throttle_;
  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
  double unread_ = 0;
};

class Coming : public ::testing::Test, protected Server {};

TEST_F(Coming, NoneIsRefusedWhereThereWereNeverTooMany) {
  Go(100, 0, 0);
  EXPECT_EQ(LetIn(10'000), 10'000);
}

TEST_F(Coming, FewAreNoReason) {
  Server server(milliseconds(5));  // though each of them is late
  server.Go(100, 0, 0);
  server.Go(20, 3, 15);
  EXPECT_EQ(server.throttle_.share(), 1);
}

TEST_F(Coming, CallersWhoBeginAllAtOnceAreNoReason) {
  Go(100, 0, 0);
  Go(3, 70, 210);  // and then each waits for its answer, for longer than `late`
  Go(100, 0, 210);
  EXPECT_EQ(throttle_.share(), 1);
}

TEST_F(Coming, ThoseThatWaitForVeryLongAreSoon) {
  Server server(milliseconds(20));
  server.Go(100, 0, 0);
  server.Go(3, 70, 1e9);  // two hundred at the end, for a hundred milliseconds
  EXPECT_LT(server.throttle_.share(), 1);
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
  const int let_in = LetIn(10'000);
  EXPECT_GT(let_in, 350) << "callers who are many wait for long";
  EXPECT_LT(let_in, 550) << "two hundred milliseconds of work, and a bit";
  now_ += std::chrono::seconds(3);
  EXPECT_EQ(LetIn(10'000), 10'000);
}

/// What came before would say for long yet that it is too much.
TEST_F(Coming, MoreAndMoreMayWhereNothingWaits) {
  Go(100, 0, 0);
  Go(40, 20, 1e9);
  unread_ = 0;
  int looks = 0;
  for (; looks < 1000 && throttle_.share() < 1; ++looks) Go(1, 0, 0);
  EXPECT_LT(looks, 120);
}

/// Who comes again at once would be refused again and again.
TEST_F(Coming, AreNotRefusedManyTimesAsOftenAsOthersAreDone) {
  Go(100, 0, 0);
  Go(40, 20, 1e9);
  int refused = 0;
  for (int call = 0; call < 10'000; ++call) refused += throttle_.Refuses(now_) ? 1 : 0;
  EXPECT_GE(refused, 2);
  EXPECT_LE(refused, 10) << "of five milliseconds, in which ten are done";
}

/// Refused or not, it came: the share would become larger with each one that is refused.
TEST_F(Coming, ThoseRefusedCountAsCome) {
  Server others;
  for (Server* const server : {static_cast<Server*>(this), &others}) {
    server->Go(100, 0, 0);
    server->Go(40, 20, 1e9);
    server->unread_ = 0;
    for (int look = 0; look < 7; ++look) {
      server->Go(1, 0, 0, 5);
      for (int call = 0; server == this && call < 200; ++call) (void)server->throttle_.Refuses(now_);
    }
  }
  EXPECT_LT(throttle_.share(), others.throttle_.share());
}

}  // namespace
}  // namespace tilewire::rpc
