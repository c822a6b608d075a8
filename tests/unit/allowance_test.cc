// What calls may hold of a common limit, and that no caller holds so much of it that others find nothing.
#include "server/rpc/transport/allowance.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tilewire::rpc {
namespace {

const std::string kAnn = "ann", kBob = "bob";

struct Call {
  Call(Allowance* allowance, std::string whose) : share(std::move(whose)), holding(allowance, &share) {}
  const std::string share;
  Holding holding;
};

class Allowances : public ::testing::Test {
 protected:
  static constexpr int64_t kLimit = 16'000;
  Allowances() { allowance_.SetLimit(kLimit); }
  /// A call of 10 bytes.
  Status TakeMore(const std::string& share) {
    calls_.push_back(std::make_unique<Call>(&allowance_, share));
    return calls_.back()->holding.Reach(10);
  }
  /// Such calls until one is refused; why.
  Status Fill(const std::string& share) {
    Status status;
    while (status.ok()) status = TakeMore(share);
    return status;
  }

  Allowance allowance_{"tests"};
  std::vector<std::unique_ptr<Call>> calls_;
};

TEST_F(Allowances, OneCallerLeavesOthersRoom) {
  const Status refused = Fill(kAnn);
  EXPECT_EQ(refused.reason(), "BUSY");
  EXPECT_NE(refused.message().find("tests of one caller hold 9000 bytes"), std::string::npos)
      << refused.message();
  EXPECT_EQ(allowance_.held(), kLimit / 16 * 13);
  Holding bob(&allowance_, &kBob);
  EXPECT_TRUE(bob.Reach(2000).ok());
  EXPECT_FALSE(Holding(&allowance_, &kAnn).Reach(1).ok());
}

TEST_F(Allowances, SoDoManyWhoComeTogether) {
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) names.push_back("caller " + std::to_string(i));
  for (bool all_refused = false; !all_refused;) {
    all_refused = true;
    for (const std::string& name : names) all_refused = !TakeMore(name).ok() && all_refused;
  }
  EXPECT_LE(allowance_.held(), kLimit - kLimit / 4 * 3 / (1 + 3 * 8));
  EXPECT_TRUE(TakeMore(kBob).ok());
}

/// Nothing is taken back from who came first.
TEST_F(Allowances, EachWhoComesLaterLeavesAQuarterOfWhatHeFound) {
  int64_t free = kLimit / 4 * 3;
  for (const std::string& name : {"ann", "eve", "max"}) {
    EXPECT_EQ(Fill(name).reason(), "BUSY");
    free /= 4;
    EXPECT_GE(kLimit - allowance_.held(), free);
  }
  EXPECT_TRUE(TakeMore(kBob).ok());
}

TEST_F(Allowances, NobodyIsRefusedWhileAQuarterIsFree) {
  Holding ann(&allowance_, &kAnn), also_ann(&allowance_, &kAnn), bob(&allowance_, &kBob);
  EXPECT_TRUE(bob.Reach(4000).ok());
  EXPECT_TRUE(ann.Reach(5000).ok());
  bob.Release();
  EXPECT_TRUE(also_ann.Reach(7000).ok()) << "hers all counts, the first quarter was Bob's";
  EXPECT_FALSE(also_ann.Reach(7001).ok());
}

TEST_F(Allowances, ACallAlonePasses) {
  Holding alone(&allowance_, &kAnn);
  EXPECT_TRUE(alone.Reach(1000).ok());
  EXPECT_TRUE(alone.Reach(kLimit + 1).ok()) << "what it has itself is no other's";
  const Status refused = Holding(&allowance_, &kBob).Reach(1);
  EXPECT_NE(refused.message().find("tests hold 16001 bytes for messages; allowed: 16000"), std::string::npos)
      << refused.message();
  alone.Release();
  EXPECT_EQ(allowance_.held(), 0);
  EXPECT_EQ(allowance_.shares(), 0u);
}

TEST_F(Allowances, TheFirstQuarterIsNobodys) {
  Holding ann(&allowance_, &kAnn), bob(&allowance_, &kBob);
  EXPECT_TRUE(ann.Reach(kLimit / 4 - 1).ok());
  bob.Admit(1);
  EXPECT_EQ(allowance_.shares(), 0u) << "no lock was needed";
  EXPECT_TRUE(bob.Reach(2).ok());
  EXPECT_EQ(allowance_.shares(), 1u);
  ann.Release();
  EXPECT_EQ(allowance_.shares(), 1u);
  bob.Release();
  EXPECT_EQ(allowance_.shares(), 0u);
}

TEST_F(Allowances, WhatIsBoundAlreadyCountsToo) {
  Holding ann(&allowance_, &kAnn);
  ann.Admit(kLimit * 2);
  EXPECT_EQ(allowance_.held(), kLimit * 2);
  EXPECT_EQ(allowance_.shares(), 1u);
  ann.Release();
  Holding others(&allowance_, &kBob), bound(&allowance_, &kAnn);
  EXPECT_TRUE(others.Reach(1000).ok());
  bound.Admit(12'000);
  EXPECT_FALSE(Holding(&allowance_, &kAnn).Reach(1).ok());
  EXPECT_TRUE(others.Reach(2000).ok());
}

TEST_F(Allowances, AllComesBack) {
  constexpr int kThreads = 4, kHoldings = 20;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < kThreads; ++seed)
    threads.emplace_back([&, seed] {
      const std::vector<std::string> names{kAnn, kBob, "eve"};
      std::mt19937 random(seed);
      std::vector<std::optional<Holding>> holdings(kHoldings);
      for (int turn = 0; turn < 20'000; ++turn) {
        std::optional<Holding>& one = holdings[random() % kHoldings];
        if (!one) one.emplace(&allowance_, &names[random() % names.size()]);
        const auto bytes = static_cast<int64_t>(random() % 2000);
        switch (random() % 4) {
          case 0:
            (void)one->Reach(bytes);
            break;
          case 1:
            one->Admit(bytes / 4);
            break;
          case 2:
            one->Release();
            break;
          default:
            one.reset();
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(allowance_.held(), 0);
  EXPECT_EQ(allowance_.shares(), 0u);
}

TEST(Allowance, TryTakesOnlyWhatIsLeft) {
  Allowance allowance("tests");
  allowance.SetLimit(100);
  Allowance::Held held;
  EXPECT_FALSE(allowance.Try(101, &held)) << "not even when nothing else is held";
  EXPECT_EQ(allowance.held(), 0);
  EXPECT_TRUE(allowance.Try(60, &held));
  EXPECT_FALSE(allowance.Try(41, &held));
  EXPECT_TRUE(allowance.Try(40, &held));
  EXPECT_EQ(allowance.held(), 100);
  EXPECT_EQ(held.bytes, 100);
}

TEST(Allowance, HoldingTriesForTheDifference) {
  Allowance allowance("tests");
  allowance.SetLimit(100);
  {
    Holding first(&allowance, &kAnn), second(&allowance, &kAnn);
    EXPECT_TRUE(first.TryReach(60));
    EXPECT_TRUE(first.TryReach(50)) << "it has more";
    EXPECT_FALSE(second.TryReach(50));
    EXPECT_EQ(allowance.held(), 60);
    EXPECT_TRUE(second.TryReach(40));
    EXPECT_FALSE(first.TryReach(61));
    second.Release();
    EXPECT_TRUE(first.TryReach(100));
    EXPECT_EQ(allowance.held(), 100);
  }
  EXPECT_EQ(allowance.held(), 0);
}

}  // namespace
}  // namespace tilewire::rpc
