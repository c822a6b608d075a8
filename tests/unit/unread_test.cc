// Calls that lie in sockets: that they are counted over all connections, and count as waiting.
#include "server/rpc/listener/unread.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "server/rpc/calls/throttle.h"
#include "server/rpc/listener/connections.h"
#include "server/rpc/listener/observer.h"

namespace tilewire::rpc {
namespace {

using std::chrono::milliseconds;

/// Connections whose other ends are here, each of which brings five calls every ten milliseconds.
class Unread : public ::testing::Test {
 protected:
  /// One with so many of them in its socket.
  void Add(int calls) {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    others_.emplace_back(ends[1]);
    const std::string name = "ipv4:192.0.2.1:" + std::to_string(others_.size());
    connections_.Add({.group = "192.0.2.1", .name = name}, FileDescriptor(ends[0]));
    accounts_.push_back(connections_.AccountOf(name));
    const std::string bytes(static_cast<size_t>(calls) * 4096, 'x');
    ASSERT_EQ(send(ends[1], bytes.data(), bytes.size(), MSG_DONTWAIT), static_cast<ssize_t>(bytes.size()));
  }
  double Count(int times = 100) {
    double unread = 0;
    for (int i = 0; i < times; ++i) {
      for (const auto& account : accounts_)
        account->calls += 5, account->requests += 5, account->message_bytes += 5 * (4096 - 128);
      unread = connections_.CountUnread(now_ += milliseconds(10)).light;
    }
    return unread;
  }

  class Silent : public ConnectionObserver {};
  Silent observer_;
  Connections connections_{{.most = 1000, .most_per_peer = 1000}, &observer_};
  std::vector<FileDescriptor> others_;
  std::vector<std::shared_ptr<ConnectionAccount>> accounts_;
  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
};

TEST_F(Unread, NothingIsNone) {
  EXPECT_EQ(Count(), 0);
  Add(0);
  EXPECT_EQ(Count(), 0);
}

TEST_F(Unread, IsThatOfAllConnections) {
  for (const int calls : {1, 2, 4}) Add(calls);
  EXPECT_NEAR(Count(), 7, 0.01);
}

TEST_F(Unread, IsCountedOnceInAFewMilliseconds) {
  Add(1);
  const double before = Count();
  EXPECT_NEAR(before, 1, 0.01);
  const std::string more(4096, 'x');
  ASSERT_EQ(send(others_[0].get(), more.data(), more.size(), MSG_DONTWAIT), 4096);
  EXPECT_EQ(connections_.CountUnread(now_ + milliseconds(1)).light, before);
  EXPECT_NEAR(Count(), 2, 0.01);
}

TEST_F(Unread, OfVeryManyConnectionsAPartStandsForAll) {
  for (int i = 0; i < 300; ++i) Add(1);
  (void)Count();
  for (int i = 0; i < 20; ++i) EXPECT_NEAR(Count(1), 300, 3);
}

/// A server that reads as many calls as it does, so that nothing waits but what lies in sockets.
class ThrottledUnread : public ::testing::Test {
 protected:
  explicit ThrottledUnread(double crowd = 400) : throttle_(milliseconds(20), crowd) {}

  /// So many calls in each of so many looks; after each `unread` more lie in sockets, up to `most`.
  void Go(int looks, int calls, double unread, double most) {
    for (int i = 0; i < looks; ++i) {
      now_ += milliseconds(5);
      for (int call = 0; call < calls; ++call) Throttle::Passage(&throttle_, nullptr).Begins();
      unread_ = std::min(unread_ + unread, most);
      const Throttle::Passage last(&throttle_, nullptr);
      throttle_.Look(now_, unread_);
    }
  }

  /// For which a connection is asked of which a call came a while ago.
  Clock::duration HoldOf(const std::shared_ptr<Turn>& turn) {
    auto hold = throttle_.Asks(turn, now_);
    Go(1, 100, 0, unread_);
    if (!hold) hold = throttle_.Asks(turn, now_);
    return hold ? hold->hold : Clock::duration{};
  }

  Throttle throttle_;
  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
  double unread_ = 0;
};

TEST_F(ThrottledUnread, WhatGrowsInSocketsIsTooMuch) {
  Go(100, 100, 0, 0);
  ASSERT_EQ(throttle_.share(), 1);
  Go(10, 100, 100, 1e9);  // twice as many come as are read
  EXPECT_LT(throttle_.share(), 0.8);
}

TEST_F(ThrottledUnread, ACrowdOfCallersIsNot) {
  Go(100, 50, 0, 0);
  for (int burst = 0; burst < 10; ++burst) {
    Go(40, 50, 100, 350);  // thirty-five milliseconds
    EXPECT_EQ(throttle_.share(), 1);
    unread_ = 0;
    Go(100, 50, 0, 0);
  }
}

TEST_F(ThrottledUnread, HowLongFewWaitInSocketsIsNoReason) {
  Go(100, 10, 0, 0);
  Go(40, 10, 3, 3);
  Go(10, 10, 80, 300);
  EXPECT_EQ(throttle_.share(), 1) << "a hundred and fifty milliseconds, if it is true";
}

TEST_F(ThrottledUnread, NorHowLongManyWaitInLineOfAServerThatIsNotWarm) {
  std::deque<Throttle::Passage> line;
  for (int look = 0; look < 15; ++look) {
    now_ += milliseconds(5);
    for (int call = 0; call < 10; ++call) Throttle::Passage(&throttle_, nullptr).Begins();
    for (int call = 0; call < 60 && line.size() < 300; ++call) line.emplace_back(&throttle_, nullptr);
    throttle_.Look(now_);
  }
  EXPECT_EQ(throttle_.share(), 1);
}

TEST_F(ThrottledUnread, WhoHasFewInLineIsAskedAllTheSame) {
  Go(100, 100, 0, 0);
  const auto own_turn = std::make_shared<Turn>(), other_turn = std::make_shared<Turn>();
  const Throttle::Passage own(&throttle_, &own_turn->waiting);
  std::deque<Throttle::Passage> others;
  for (int call = 0; call < 60; ++call) others.emplace_back(&throttle_, &other_turn->waiting);
  Go(20, 100, 100, 1e9);
  ASSERT_LT(throttle_.share(), 1);
  EXPECT_GT(HoldOf(own_turn), Clock::duration{}) << "nobody knows whose the others are";
}

TEST_F(ThrottledUnread, HoldsAreLongerWhereMoreLiesInSockets) {
  Go(100, 100, 0, 0);
  while (throttle_.share() == 1 && unread_ < 1e4) Go(1, 100, 100, 1e4);
  const Clock::duration first = HoldOf(std::make_shared<Turn>());
  EXPECT_GT(first, Clock::duration{});
  EXPECT_LE(first, milliseconds(128));
  Go(100, 100, 100, 1e4);
  EXPECT_GT(HoldOf(std::make_shared<Turn>()), milliseconds(256));
}

/// Or all that is read were old for ever.
TEST_F(ThrottledUnread, WhereCallsAreRefusedByAgeConnectionsComeAgainTheMoreSlowlyTheLongerCallsWait) {
  Go(100, 100, 0, 0);
  while (throttle_.share() == 1 && unread_ < 1e4) Go(1, 100, 100, 1e4);
  unread_ = 2000;  // a tenth of a second
  Go(1, 100, 0, unread_);
  const Clock::duration first = HoldOf(std::make_shared<Turn>()), second = HoldOf(std::make_shared<Turn>());
  EXPECT_GT(first, milliseconds(150));
  EXPECT_GT(second - first, milliseconds(8)) << "after a look, five milliseconds later";
}

TEST_F(ThrottledUnread, LessAndLessMayComeWhileSocketsStayFull) {
  Go(100, 100, 0, 0);
  Go(8, 100, 100, 600);
  unread_ = 160;  // 8 ms
  Go(8, 100, 0, 160);
  const double soon = throttle_.share();
  ASSERT_LT(soon, 1);
  Go(24, 100, 0, 160);
  EXPECT_LT(throttle_.share(), 0.8 * soon) << "clients have more, which nobody sees";
  unread_ = 0;
  Go(200, 50, 0, 0);
  EXPECT_EQ(throttle_.share(), 1);
}

/// The same where calls are heavy, and come a window at a time.
class ThrottledHeavyUnread : public ThrottledUnread {
 protected:
  ThrottledHeavyUnread() : ThrottledUnread(0) {}

  /// In each of so many looks 20 are read; after every second one as many more lie in sockets.
  void Windows(int looks, double more) {
    for (int i = 0; i < looks; ++i) Go(1, 20, i % 2 == 1 ? more : -20, 1e9);
  }
};

TEST_F(ThrottledHeavyUnread, WhatComesAWindowAtATimeIsSeenToGrow) {
  Go(100, 20, 20, 20);
  ASSERT_EQ(throttle_.share(), 1);
  unread_ = 60;
  Windows(30, 32);  // 1.3 times as many as are read
  EXPECT_LT(throttle_.share(), 1);
}

TEST_F(ThrottledHeavyUnread, WhatComesSoAndDoesNotGrowIsNotTooMuch) {
  Go(100, 20, 20, 20);
  unread_ = 60;
  Windows(200, 20);
  EXPECT_EQ(throttle_.share(), 1);
}

TEST_F(ThrottledHeavyUnread, MayWaitForMoreThanAnEighthOfLate) {
  Go(100, 60, 60, 60);
  Go(10, 60, 60, 1e9);
  ASSERT_LT(throttle_.share(), 1);
  unread_ = 36;  // 3 ms
  Go(20, 60, 0, 36);
  const double soon = throttle_.share();
  Go(300, 60, 0, 36);
  EXPECT_GT(throttle_.share(), 1.1 * soon) << "as many come as are done";
}

}  // namespace
}  // namespace tilewire::rpc
