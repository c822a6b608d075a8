// How many calls lie in a connection's socket, by what its calls brought lately.
#include "server/rpc/listener/unread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tilewire::rpc {
namespace {

using std::chrono::milliseconds;

/// One connection that brings calls every ten milliseconds.
class Recent : public ::testing::Test {
 protected:
  void Bring(uint64_t calls, uint64_t bytes, int times = 100) {
    for (int i = 0; i < times; ++i) {
      account_.calls += calls, account_.requests += calls, account_.message_bytes += bytes;
      calls_.Update(now_ += milliseconds(10), account_);
    }
  }

  double Light(int64_t unread_bytes) { return calls_.In(unread_bytes, &account_).light; }
  bool behind() const { return now_ < account_.behind.load(); }

  ConnectionAccount account_;
  RecentCalls calls_;
  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
};

TEST_F(Recent, CallsAreAsLargeAsThoseThatCame) {
  EXPECT_EQ(Light(1 << 20), 0) << "nobody knows what it is";
  Bring(10, 10 * 4000);
  EXPECT_NEAR(Light(5 * 4128), 5, 0.01);
  Bring(10, 10 * 8000);
  EXPECT_NEAR(Light(5 * 8128), 5, 0.01);
}

TEST_F(Recent, AreNoMoreThanComeInASecond) {
  Bring(10, 10 * 200);
  EXPECT_NEAR(Light(64 << 20), 1000, 10) << "a large message, or a stream";
}

/// Where many connections share a core each is read once in a while, until when the more lies in it.
TEST_F(Recent, AreNotForgottenWhileNobodyReadsThem) {
  Bring(10, 10 * 4000);
  for (const int calls : {100, 200, 300}) {
    EXPECT_NEAR(calls_.In(calls * 4128, &account_, 7).light, calls, 0.1);
    Bring(0, 0, 30);
  }
  Bring(10, 10 * 4000, 1);
  EXPECT_NEAR(Light(300 * 4128), 300, 0.1) << "read at last";
}

TEST_F(Recent, AreForgottenWhereNobodyReadsForVeryLong) {
  Bring(10, 10 * 4000);
  (void)Light(100 * 4128);
  Bring(0, 0, 200);
  EXPECT_EQ(Light(100 * 4128), 0);
}

TEST_F(Recent, AreForgottenWhereNothingComesAndNothingLies) {
  Bring(10, 10 * 4000);
  (void)Light(0);
  Bring(0, 0);
  EXPECT_EQ(Light(300 * 4128), 0);
}

/// Half of it is here, and no call is.
TEST_F(Recent, AreNoneInALargeMessage) {
  Bring(10, 10 * 4000);
  Bring(0, 0, 1);
  EXPECT_TRUE(calls_.MayBeInAMessage(16 << 10));
  EXPECT_FALSE(calls_.MayBeInAMessage((16 << 10) - 1));
  EXPECT_GT(calls_.In(1 << 20, &account_, 5 << 20).light, 0) << "or not read";
  Bring(0, 0, 1);
  EXPECT_GT(calls_.In(1 << 20, &account_, (5 << 20) + (64 << 10)).light, 0);
  EXPECT_EQ(calls_.In(1 << 20, &account_, (5 << 20) + (64 << 10) + 1).light, 0);
  account_.behind = TimePoint{};
  account_.coming = 200;
  EXPECT_EQ(calls_.In(1 << 20, &account_, (5 << 20) + (128 << 10)).light, 0)
      << "nor among those on their way";
  EXPECT_FALSE(behind());
  account_.coming = 0;
  Bring(0, 0);
  EXPECT_EQ(calls_.In(1 << 20, &account_, 5 << 20).light, 0) << "forgotten";
  Bring(10, 10 * 4000);
  EXPECT_FALSE(calls_.MayBeInAMessage(1 << 20));
  EXPECT_GT(Light(1 << 20), 0);
}

TEST_F(Recent, AreCountedWhereSomeComeASecondAndNotWhereHardlyAnyDo) {
  for (int i = 0; i < 100; ++i) Bring(1, 4000, 1), Bring(0, 0, 1);
  EXPECT_NEAR(Light(3 * 4128), 3, 0.01) << "fifty";
  for (int i = 0; i < 100; ++i) Bring(1, 4000, 1), Bring(0, 0, 9);
  EXPECT_EQ(Light(3 * 4128), 0) << "ten";
}

TEST_F(Recent, AreNoneWhereFewOrLargeOnesCame) {
  Bring(10, 10 << 20);
  EXPECT_EQ(Light(4 << 20), 0);
  Bring(1, 200, 1);
  Bring(0, 0, 10);
  EXPECT_EQ(Light(4 << 20), 0);
}

TEST_F(Recent, AreNoneWhereAStreamBringsMuchBesideThem) {
  Bring(10, (10 * 200) + (1 << 20));
  EXPECT_EQ(Light(4 << 20), 0);
}

TEST_F(Recent, AreAsLargeAsWhatIsReadForThem) {
  for (int i = 0; i < 100; ++i) {
    account_.carried += 10 * 40'000;
    Bring(10, 0, 1);
  }
  EXPECT_NEAR(Light(400'000), 10, 0.1) << "refused, or of streams without a message";
  for (int i = 0; i < 100; ++i) {
    account_.carried += 10 * 80'000;
    Bring(10, 0, 1);
  }
  EXPECT_EQ(Light(400'000), 0) << "and no light ones";
}

TEST_F(Recent, OfWhomMuchLiesUnreadThoseAreInItWhoseMessagesAreOnTheirWay) {
  Bring(10, 10 * 4000);
  account_.coming = 70;
  EXPECT_NEAR(Light(5 * 4128), 70, 0.01) << "its window is full";
  EXPECT_NEAR(Light(2 * 4128), 2, 0.01) << "they are about to come";
}

TEST_F(Recent, OfLightOnesMuchUnreadOnceIsBehind) {
  Bring(10, 10 * 4000);
  (void)Light((16 << 10) - 1);
  EXPECT_FALSE(behind());
  (void)Light(16 << 10);
  EXPECT_TRUE(behind());
  now_ += milliseconds(300);
  EXPECT_FALSE(behind());
}

class RecentHeavy : public Recent {
 protected:
  /// The tenth call in ten milliseconds, and the next, is one of so many bytes.
  void Bring(uint64_t bytes) {
    for (int i = 0; i < 8; ++i) account_.CountBrought(Weight::kHeavy, true);
    Recent::Bring(10, 10 * bytes);
  }
  double Heavy(int64_t unread_bytes) { return calls_.In(unread_bytes, &account_).heavy; }
};

TEST_F(RecentHeavy, CountWhereMuchLiesUnreadTwice) {
  Bring(1 << 20);
  account_.coming = 7;
  EXPECT_EQ(Heavy(0), 0) << "who is slow to send";
  EXPECT_EQ(Heavy(64 << 10), 0) << "is read as fast as it comes, for all one knows";
  EXPECT_FALSE(behind());
  EXPECT_EQ(Heavy(64 << 10), 7);
  EXPECT_TRUE(behind());
}

/// Of which nothing is asked: they are large messages anyway.
TEST_F(RecentHeavy, MayNotBeInALargeMessage) {
  Bring(1 << 20);
  Recent::Bring(0, 0, 1);
  EXPECT_FALSE(calls_.MayBeInAMessage(1 << 20));
}

TEST_F(RecentHeavy, CountForAWhileWhateverLiesUnread) {
  Bring(1 << 20);
  account_.coming = 7;
  for (int i = 0; i < 2; ++i) (void)Heavy(64 << 10);
  EXPECT_EQ(Heavy(0), 7) << "a window was read, and the next is to come";
  account_.coming = 3;
  EXPECT_EQ(Heavy(0), 3);
  Recent::Bring(10, 10 << 20, 30);  // 0.3 s
  EXPECT_EQ(Heavy(0), 0);
  EXPECT_EQ(Heavy(64 << 10), 0);
}

TEST_F(RecentHeavy, ThoseThatWereRefusedAtTheirHeadersAreNoMeasure) {
  Bring((64 << 10) - 128);
  for (int i = 0; i < 100; ++i) {
    account_.calls += 10, account_.requests += 1, account_.message_bytes += (64 << 10) - 128;
    calls_.Update(now_ += milliseconds(10), account_);
  }
  (void)Heavy(4 << 20);
  EXPECT_NEAR(Heavy(4 << 20), 64, 2);
}

TEST_F(RecentHeavy, AreFewOfWhoOpensManyThatNeverCome) {
  Bring(1 << 20);
  Recent::Bring(0, 0, 100);  // a second
  account_.coming = 250;
  for (int i = 0; i < 2; ++i) (void)Heavy(64 << 10);
  EXPECT_NEAR(Heavy(64 << 10), 8, 0.01);
}

TEST_F(RecentHeavy, AreAsManyAsTheBytesBring) {
  Bring((64 << 10) - 128);
  account_.coming = 7;
  (void)Heavy(4 << 20);
  EXPECT_NEAR(Heavy(4 << 20), 64, 0.1) << "whose headers lie behind what is unread, too";
  EXPECT_NEAR(Heavy(64 << 10), 7, 0.1);
}

TEST_F(RecentHeavy, AreNoMoreThanCameLately) {
  Bring(200);  // of operands that are at the server
  (void)Heavy(4 << 20);
  EXPECT_NEAR(Heavy(4 << 20), 100, 1) << "an upload beside them";
}

TEST_F(RecentHeavy, ConnectionsAreBehindForAWhile) {
  Bring(1 << 20);
  for (int i = 0; i < 2; ++i) (void)Heavy(64 << 10);
  ASSERT_TRUE(behind());
  account_.coming = 5;
  EXPECT_EQ(account_.KeptWaiting(now_), 5);
  now_ += milliseconds(300);
  EXPECT_FALSE(behind());
  EXPECT_EQ(account_.KeptWaiting(now_), 0) << "they wait for their line";
  account_.round_trip_us = 2000;
  EXPECT_EQ(account_.KeptWaiting(now_), 0);
  account_.round_trip_us = 200;
  EXPECT_EQ(account_.KeptWaiting(now_), 5) << "whose line is short";
}

TEST_F(Recent, WhoHasLightOnesTooIsNotTakenForHeavy) {
  for (int i = 0; i < 100; ++i) account_.CountBrought(i % 8 != 7 ? Weight::kHeavy : Weight::kLight, false);
  EXPECT_FALSE(account_.brings_heavy());
  account_.coming = 7;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(calls_.In(64 << 10, &account_).heavy, 0);
}

}  // namespace
}  // namespace tilewire::rpc
