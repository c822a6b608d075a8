// What connections may send that no call takes.
#include "server/rpc/listener/unasked.h"

#include <gtest/gtest.h>

namespace tilewire::rpc {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

/// One connection, looked at ten times a second.
class UnaskedTest : public ::testing::Test {
 protected:
  void Come(uint64_t bytes, uint64_t answered = 0) {
    bytes_.received += bytes;
    bytes_.sent += answered;
    unasked_.Update(0.1, bytes_, account_);
  }
  /// Also when it is looked at once more.
  bool TooMany() {
    Come(0);
    Come(0);
    return unasked_.too_many();
  }
  /// One that was let in, and is over.
  void CallEnds() {
    ++account_.calls;
    Come(0);
    ++account_.ended;
    Come(0);
  }

  ConnectionAccount account_;
  TcpBytes bytes_;
  Unasked unasked_;
};

TEST_F(UnaskedTest, OfStrangersAHandshakeAndLittleMore) {
  Come(200 * kKiB);
  EXPECT_FALSE(TooMany());
  for (int tenth = 0; tenth < 100'000; ++tenth) Come(6);  // pings
  EXPECT_FALSE(TooMany());
  Come(257 * kKiB);
  EXPECT_TRUE(TooMany());
}

TEST_F(UnaskedTest, LittleByLittleItIsNone) {
  for (int tenth = 0; tenth < 10'000; ++tenth) Come(200);
  EXPECT_FALSE(TooMany()) << "who asks for health with a long token";
  for (int tenth = 0; tenth < 10'000; ++tenth) Come(500);
  EXPECT_TRUE(TooMany());
}

TEST_F(UnaskedTest, OneLookIsNone) {
  Come(300 * kKiB);
  EXPECT_FALSE(unasked_.too_many()) << "its call may wait for a thread";
  ++account_.calls;
  EXPECT_FALSE(TooMany());
}

TEST_F(UnaskedTest, WhatIsAnsweredIsNone) {
  for (int call = 0; call < 100'000; ++call) Come(200, 60);  // of health
  EXPECT_FALSE(TooMany());
  account_.seen = true;
  for (int call = 0; call < 100'000; ++call) {
    account_.Carry(150);
    Come(200, 60);
  }
  for (int update = 0; update < 100'000; ++update) Come(26, 16 * kKiB);
  EXPECT_FALSE(TooMany());
}

/// Settings, and pings.
TEST_F(UnaskedTest, WhatTheServerAnswersPaysForNothing) {
  account_.seen = true;
  for (int i = 0; i < 300; ++i) Come(kKiB, kKiB);
  EXPECT_FALSE(TooMany()) << "a few";
  for (int i = 0; i < 500; ++i) Come(kKiB, kKiB);
  EXPECT_TRUE(TooMany());
  account_.calls = 1;
  EXPECT_FALSE(TooMany());
  for (int i = 0; i < 25; ++i) Come(kMiB, kMiB);
  EXPECT_TRUE(TooMany()) << "beside a call";
}

TEST_F(UnaskedTest, WhoseCallsAllCameToNothingIsAStranger) {
  account_.calls = account_.ended = 50;
  account_.failed = 50;
  Come(10 * kMiB);
  EXPECT_FALSE(TooMany()) << "since the last look there were calls";
  Come(300 * kKiB);
  EXPECT_TRUE(TooMany());
}

TEST_F(UnaskedTest, WhatIsCarriedPaysForItsFrames) {
  account_.seen = true;
  account_.calls = 1;
  for (int i = 0; i < 100; ++i) {
    account_.Carry(100 * kMiB);
    Come(101 * kMiB);
    EXPECT_FALSE(TooMany());
  }
  for (int i = 0; i < 100; ++i) {  // messages of some bytes
    account_.Carry(kMiB);
    Come(4 * kMiB);
    EXPECT_FALSE(TooMany());
  }
}

TEST_F(UnaskedTest, WhereNobodySeesWhatIsReadAnythingWhileACallIsOpen) {
  account_.calls = 1;
  for (int i = 0; i < 100; ++i) {
    Come(100 * kMiB);
    EXPECT_FALSE(TooMany());
  }
  account_.ended = 1;
  Come(100 * kMiB);
  EXPECT_FALSE(TooMany());
  Come(3 * kMiB);
  EXPECT_FALSE(TooMany()) << "windows of streams";
  Come(3 * kMiB);
  EXPECT_TRUE(TooMany());
}

TEST_F(UnaskedTest, FramesThatCarryNothingAreNotPaidByCalls) {
  account_.seen = true;
  account_.Carry(50);
  for (int i = 0; i < 250; ++i) {
    CallEnds();
    account_.Carry(50);
    Come(64 * kKiB);
    EXPECT_FALSE(TooMany()) << i;
  }
  for (int i = 0; i < 100; ++i) Come(0);
  for (int i = 0; i < 9; ++i) Come(kMiB);
  ++account_.calls;
  for (int i = 0; i < 9; ++i) Come(kMiB);
  EXPECT_TRUE(TooMany());
}

TEST_F(UnaskedTest, NorByTime) {
  account_.seen = true;
  account_.calls = 1;
  account_.Carry(50);
  for (int tenth = 0; tenth < 10'000; ++tenth) Come(90 * kKiB);  // 16 MiB in the end
  EXPECT_FALSE(TooMany());
  for (int tenth = 0; tenth < 10'000; ++tenth) Come(150 * kKiB);
  EXPECT_TRUE(TooMany());
  account_.window = 64 * kMiB;
  EXPECT_FALSE(TooMany()) << "of streams that are over";
}

TEST_F(UnaskedTest, WhatWasOnItsWayToACallMayCome) {
  account_.window = 65 * kMiB;
  CallEnds();
  Come(100 * kMiB);
  EXPECT_FALSE(TooMany());
  for (int i = 0; i < 100; ++i) Come(0);
  EXPECT_FALSE(TooMany()) << "and is forgotten";
  Come(3 * kMiB);
  EXPECT_TRUE(TooMany()) << "by then all has come";
}

TEST_F(UnaskedTest, CountsOfCallsMayWrap) {
  account_.calls = (uint64_t{1} << 32) + 7;
  account_.ended = 7;
  Come(0);
  Come(5 * kMiB);
  EXPECT_TRUE(TooMany());
  ++account_.calls;
  Come(5 * kMiB);
  EXPECT_FALSE(TooMany());
}

}  // namespace
}  // namespace tilewire::rpc
