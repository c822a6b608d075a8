// Calls that come to nothing: those that no thread has taken yet, and those of connections that are gone.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "server/rpc/listener/account.h"
#include "server/rpc/listener/left_before.h"
#include "server/rpc/listener/read_accounts.h"

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

class RestraintTest : public ::testing::Test {
 protected:
  RestraintTest() { account_.restrained = true; }
  bool Begin() {
    return account_.BeginStream([this] { return now_; });
  }
  int Begun() {
    for (int i = 0; i < 1000; ++i)
      if (!Begin()) return i;
    return 1000;
  }
  ConnectionAccount account_;
  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
};

TEST_F(RestraintTest, AFewMayBeBegunAndAsManyEachSecond) {
  EXPECT_EQ(Begun(), 16) << "nobody took so many";
  account_.calls = 17;
  EXPECT_EQ(Begun(), 0) << "they are open";
  account_.ended = account_.failed = 17;
  EXPECT_EQ(Begun(), 0) << "they came to nothing";
  now_ += std::chrono::seconds(3);
  EXPECT_EQ(Begun(), 3 * 16 - 3) << "as who asks for health";
}

TEST_F(RestraintTest, TwiceAsManyAsComeToSomething) {
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(Begin()) << i;
    ++account_.calls;
    ++account_.ended;
  }
  EXPECT_EQ(Begun(), 1000);
}

TEST_F(RestraintTest, WhatWasBeforeDoesNotCount) {
  account_.restrained = false;
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(Begin());
  account_.restrained = true;
  EXPECT_EQ(Begun(), 16);
  account_.restrained = false;
  EXPECT_TRUE(Begin());
}

TEST_F(BurdenTest, ThoseThatAreOpenAtTheEndCameToNothing) {
  for (int i = 0; i < 300; ++i) account_.BeginStream();
  account_.calls = 200;
  account_.ended = 50;
  account_.failed = 10;
  Look();
  EXPECT_NEAR(burden_.left_calls(account_), 100 + 150 + 10, 1);
}

/// Of a connection whose streams come at once, or a hundred a second.
class UntakenTest : public ::testing::Test {
 protected:
  bool Come(int count, std::chrono::milliseconds each = {}) {
    for (int i = 0; i < count; ++i) {
      now_ += each;
      if (!account_.BeginStream([this] { return now_; })) return false;
    }
    return true;
  }
  ConnectionAccount account_;
  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
};

TEST_F(UntakenTest, AreTooManyWhoComeFasterThanTheyAreTaken) {
  EXPECT_TRUE(Come(1024));
  EXPECT_FALSE(Come(400));
}

TEST_F(UntakenTest, AreNoneWhereThreadsTakeThem) {
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(Come(512)) << i;
    account_.calls += 512;
  }
}

/// Health, and what gRPC refuses.
TEST_F(UntakenTest, AreNoneThatNobodyEverTakes) {
  EXPECT_TRUE(Come(100'000, std::chrono::milliseconds(10)));
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(Come(1, std::chrono::milliseconds(1))) << i;  // beside calls that are taken
    if (i % 10 != 0) ++account_.calls;
  }
}

TEST(ReadBudget, IsPaidByHeadersMessagesAndWhatIsSent) {
  ConnectionAccount account;
  EXPECT_TRUE(account.MayBeRead(64 << 10, 0));
  EXPECT_FALSE(account.MayBeRead((64 << 10) + 1, 0));
  EXPECT_TRUE(account.MayBeRead((64 << 10) + 250, 1000));
  account.Carry(1000);
  EXPECT_TRUE(account.MayBeRead((64 << 10) + 4000, 0));
  EXPECT_FALSE(account.MayBeRead((64 << 10) + 4001, 0));
}

TEST(ReadBudget, ForgivesWhatWasSentBefore) {
  ConnectionAccount account;
  account.forgiven = 1 << 20;
  EXPECT_TRUE(account.MayBeRead((1 << 20) + (64 << 10), 0));
  EXPECT_FALSE(account.MayBeRead((1 << 20) + (64 << 10) + 1, 0));
}

/// From the same port to two addresses of ours, which gRPC does not tell apart.
TEST(ReadAccounts, TwoOfOneNameShareOneUntilBothAreGone) {
  ReadAccounts accounts;
  const std::string name = "ipv4:192.0.2.1:4000";
  const auto first = std::make_shared<ConnectionAccount>(), second = std::make_shared<ConnectionAccount>();
  EXPECT_EQ(accounts.Add(name, first), first);
  EXPECT_EQ(accounts.Add(name, second), first);
  accounts.Remove(name);
  EXPECT_EQ(accounts.Find(name), first) << "of the one that is left";
  accounts.Remove(name);
  EXPECT_EQ(accounts.Find(name), nullptr);
  EXPECT_EQ(accounts.Add(name, second), second);
}

TEST(LeftBefore, HalfIsForgottenInTenSeconds) {
  LeftBefore before;
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
