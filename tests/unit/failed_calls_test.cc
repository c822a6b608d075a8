// Calls that come to nothing: those that no thread has taken yet, and those of connections that are gone.
#include <gtest/gtest.h>

#include "server/rpc/listener/account.h"
#include "server/rpc/listener/failed_before.h"

namespace tilewire::rpc {
namespace {

class BurdenTest : public ::testing::Test {
 protected:
  double Look(double seconds = 0.1) {
    burden_.Update(seconds, 0, account_);
    return burden_.failed_calls();
  }
  ConnectionAccount account_;
  Burden burden_;
};

TEST_F(BurdenTest, WhatMayBeOpenAtOnceIsNoFailure) {
  for (int i = 0; i < 256; ++i) EXPECT_TRUE(account_.BeginStream());
  EXPECT_EQ(Look(), 0);
  for (int i = 0; i < 10'000; ++i) {  // others come as they are taken
    account_.BeginStream();
    ++account_.calls;
    ++account_.ended;
    if (i % 100 == 0) {
      EXPECT_EQ(Look(), 0) << i;
    }
  }
}

TEST_F(BurdenTest, WhatNobodyTookIsOneUntilSomebodyDoes) {
  for (int i = 0; i < 10'256; ++i) account_.BeginStream();
  EXPECT_NEAR(Look(), 10'000, 1) << "they are reset faster than they are taken";
  EXPECT_NEAR(Look(1), 10'256 / 2 - 256, 1) << "or the server is slow";
  for (int i = 0; i < 10'256; ++i) account_.BeginStream();
  Look();
  burden_.ForgiveUntaken();
  EXPECT_EQ(Look(), 0) << "or stood still";
  account_.calls = account_.ended = 20'512;
  Look();
  for (int i = 0; i < 10'256; ++i) account_.BeginStream();
  Look();
  account_.calls = account_.ended = 30'768;
  EXPECT_LT(Look(), 1) << "they were served after all";
}

TEST_F(BurdenTest, WhatIsTakenAndFailsCountsOnce) {
  for (int i = 0; i < 1000; ++i) account_.BeginStream();
  Look();
  account_.calls = account_.failed = account_.ended = 1000;
  EXPECT_NEAR(Look(), 1000, 10);
}

/// Health, and what gRPC refuses: nobody counts their calls.
TEST_F(BurdenTest, WhatNobodyEverTakesIsForgotten) {
  for (int second = 0; second < 20'000; ++second) {
    for (int i = 0; i < 10; ++i) account_.BeginStream();
    ASSERT_EQ(Look(1), 0) << second;
  }
}

TEST_F(BurdenTest, WhoIsRestrainedMayGoOnWhereHisCallsComeToSomething) {
  account_.restrained = true;
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(account_.BeginStream()) << i;
    ++account_.calls;  // open
  }
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(account_.BeginStream());
  EXPECT_FALSE(account_.BeginStream()) << "nobody took so many";
  account_.calls += 65;
  EXPECT_TRUE(account_.BeginStream());
  account_.failed = 63;
  EXPECT_FALSE(account_.BeginStream()) << "they came to nothing";
  account_.restrained = false;
  EXPECT_TRUE(account_.BeginStream());
}

TEST(FailedBefore, HalfIsForgottenInTenSeconds) {
  FailedBefore before;
  EXPECT_EQ(before.Of("192.0.2.1"), 0);
  before.Left("192.0.2.1", 1000, 1e9);
  before.Left("192.0.2.1", 1000, 1e9);
  before.Left("192.0.2.2", 500, 1e9);
  before.Left("192.0.2.3", 1, 1e9);
  EXPECT_EQ(before.Of("192.0.2.1"), 2000);
  EXPECT_EQ(before.most(), 2000);
  EXPECT_EQ(before.Of("192.0.2.3"), 0) << "not worth being kept";
  for (int i = 0; i < 10; ++i) before.Pass(1);
  EXPECT_NEAR(before.Of("192.0.2.1"), 1000, 1e-6);
  EXPECT_NEAR(before.Of("192.0.2.2"), 250, 1e-6);
  EXPECT_NEAR(before.most(), 1000, 1e-6);
  before.Left("192.0.2.1", 1000, 1500);
  EXPECT_EQ(before.Of("192.0.2.1"), 1500) << "no more than that, so that it is soon over";
  before.Pass(120);
  EXPECT_EQ(before.Of("192.0.2.1"), 0);
  before.Pass(1);
  EXPECT_EQ(before.most(), 0);
}

}  // namespace
}  // namespace tilewire::rpc
