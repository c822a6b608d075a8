// Calls that lie in sockets: how many there are by what calls bring, and that they count as waiting.
#include "server/rpc/listener/unread.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "server/rpc/calls/throttle.h"
#include "server/rpc/listener/connections.h"
#include "server/rpc/listener/observer.h"

namespace tilewire::rpc {
namespace {

using std::chrono::milliseconds;

TEST(MeanCall, IsWhatCallsBroughtLately) {
  MeanCall mean;
  ConnectionAccount account;
  mean.Update(account);
  EXPECT_EQ(mean.bytes(), 0);
  EXPECT_EQ(mean.CallsIn(1 << 20), 0) << "nobody knows what it is";
  account.calls += 100, account.message_bytes += 100 * 4000;
  mean.Update(account);
  EXPECT_EQ(mean.bytes(), 4128);
  EXPECT_EQ(mean.CallsIn(10 * 4128), 10);
  mean.Update(account);
  EXPECT_EQ(mean.bytes(), 4128) << "no call since";
  account.calls += 1000, account.message_bytes += 1000 * 8000;
  mean.Update(account);
  EXPECT_NEAR(mean.bytes(), 8128, 1);
}

/// Connections whose other ends are here.
class Unread : public ::testing::Test {
 protected:
  /// One whose calls brought so many bytes, of which so many lie in its socket.
  void Add(size_t each, size_t unread) {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    others_.emplace_back(ends[1]);
    const std::string name = "ipv4:192.0.2.1:" + std::to_string(others_.size());
    connections_.Add({.group = "192.0.2.1", .name = name}, FileDescriptor(ends[0]));
    const auto account = connections_.AccountOf(name);
    account->calls = 50, account->message_bytes = 50 * each;
    const std::string bytes(unread, 'x');
    ASSERT_EQ(send(ends[1], bytes.data(), bytes.size(), MSG_DONTWAIT), static_cast<ssize_t>(unread));
  }
  UnreadCalls Count() { return connections_.CountUnread(now_ += milliseconds(10)); }

  class Silent : public ConnectionObserver {};
  Silent observer_;
  Connections connections_{{.most = 1000, .most_per_peer = 1000}, &observer_};
  std::vector<FileDescriptor> others_;
  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
};

TEST_F(Unread, NothingIsNone) {
  EXPECT_EQ(Count().small, 0);
  Add(4000, 0);
  EXPECT_EQ(Count().small, 0);
}

TEST_F(Unread, SmallAndBulkCallsAreCountedApart) {
  Add(4096 - 128, 8192);
  Add(8192 - 128, 8192);
  Add((1 << 20) - 128, 1 << 16);
  const UnreadCalls unread = Count();
  EXPECT_EQ(unread.small, 3);
  EXPECT_EQ(unread.bulk, 1.0 / 16);
}

TEST_F(Unread, IsCountedOnceInAFewMilliseconds) {
  Add(4096 - 128, 4096);
  EXPECT_EQ(Count().small, 1);
  Add(4096 - 128, 4096);
  EXPECT_EQ(connections_.CountUnread(now_ + milliseconds(1)).small, 1);
  EXPECT_EQ(Count().small, 2);
}

TEST_F(Unread, OfVeryManyConnectionsAPartStandsForAll) {
  for (int i = 0; i < 300; ++i) Add(4096 - 128, 4096);
  for (int i = 0; i < 20; ++i) EXPECT_NEAR(Count().small, 300, 1e-6);
}

/// A server that reads as many calls as it does, so that nothing waits but what lies in sockets.
class ThrottledUnread : public ::testing::Test {
 protected:
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

  Throttle throttle_{milliseconds(20), 400};
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
  Go(100, 100, 0, 0);
  for (int burst = 0; burst < 10; ++burst) {
    Go(40, 100, 60, 300);
    EXPECT_EQ(throttle_.share(), 1);
    unread_ = 0;
    Go(100, 100, 0, 0);
  }
}

TEST_F(ThrottledUnread, NorIsOneThatASlowServerMeetsFirst) {
  Go(10, 10, 80, 300);
  EXPECT_EQ(throttle_.share(), 1) << "seventy milliseconds, of a server that is not warm yet";
}

TEST_F(ThrottledUnread, LessAndLessMayComeWhileSocketsStayFull) {
  Go(100, 100, 0, 0);
  Go(8, 100, 100, 600);
  const double soon = throttle_.share();
  ASSERT_LT(soon, 1);
  Go(30, 100, 0, 600);
  EXPECT_LT(throttle_.share(), soon / 2) << "clients have more, which nobody sees";
  unread_ = 0;
  Go(200, 50, 0, 0);
  EXPECT_EQ(throttle_.share(), 1);
}

}  // namespace
}  // namespace tilewire::rpc
