// Calls and bytes a second, by owner.
#include "server/engine/admission/rate_limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <string>

namespace tilewire::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{seconds(1000)};

TEST(RateLimits, WithoutRatesEverythingGoes) {
  RateLimits limits({});
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(limits.Take("a", int64_t{1} << 50, kStart).ok());
  EXPECT_EQ(limits.known(), 0U);
}

TEST(RateLimits, ASecondsCallsAtOnceThenAsTimeBringsThem) {
  RateLimits limits({.calls_per_second = 4});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(limits.Take("a", 0, kStart).ok()) << i;
  const Status refused = limits.Take("a", 0, kStart);
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_EQ(refused.reason(), "BUSY");
  EXPECT_EQ(refused.detail()->field, "calls a second");
  EXPECT_EQ(refused.detail()->value, "1");
  EXPECT_EQ(refused.detail()->allowed, "4 (--calls-per-second-per-identity)");
  EXPECT_EQ(refused.detail()->retry_after_ms, 250);
  EXPECT_TRUE(limits.Take("b", 0, kStart).ok()) << "another's are his own";
  EXPECT_FALSE(limits.Take("a", 0, kStart + milliseconds(249)).ok());
  EXPECT_TRUE(limits.Take("a", 0, kStart + milliseconds(250)).ok());
  EXPECT_FALSE(limits.Take("a", 0, kStart + milliseconds(250)).ok());
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(limits.Take("a", 0, kStart + seconds(100)).ok()) << i;
  EXPECT_FALSE(limits.Take("a", 0, kStart + seconds(100)).ok()) << "no more than a second's are saved";
}

TEST(RateLimits, LessThanACallASecond) {
  RateLimits limits({.calls_per_second = 0.5});
  EXPECT_TRUE(limits.Take("a", 0, kStart).ok());
  EXPECT_EQ(limits.Take("a", 0, kStart).detail()->retry_after_ms, 2000);
  EXPECT_TRUE(limits.Take("a", 0, kStart + seconds(2)).ok());
}

TEST(RateLimits, WhatIsLargerThanABucketLeavesADebt) {
  RateLimits limits({.bytes_per_second = 1000});
  EXPECT_TRUE(limits.Take("a", 5000, kStart).ok());
  const Status refused = limits.Take("a", 500, kStart);
  EXPECT_EQ(refused.detail()->field, "bytes a second");
  EXPECT_EQ(refused.detail()->value, "500");
  EXPECT_EQ(refused.detail()->retry_after_ms, 4500);
  EXPECT_EQ(limits.Take("a", 5000, kStart).detail()->retry_after_ms, 5000) << "for a full bucket";
  EXPECT_TRUE(limits.Take("a", 500, kStart + milliseconds(4500)).ok());
}

TEST(RateLimits, ARefusalTakesNothing) {
  RateLimits limits({.calls_per_second = 2, .bytes_per_second = 1000});
  EXPECT_TRUE(limits.Take("a", 1000, kStart).ok());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(limits.Take("a", 1, kStart).detail()->field, "bytes a second");
  EXPECT_TRUE(limits.Take("a", 0, kStart).ok()) << "the second call is still there";
  EXPECT_EQ(limits.Take("a", 0, kStart).detail()->field, "calls a second");
}

TEST(RateLimits, WhoComesWhenHeWasToldToIsLetIn) {
  std::mt19937_64 random(5);
  RateLimits limits({.calls_per_second = 7, .bytes_per_second = 1e6 / 3});
  TimePoint now = kStart;
  int64_t bytes = 0, refusals = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto wanted = static_cast<int64_t>(random() % 200'000);
    if (const Status refused = limits.Take("a", wanted, now); !refused.ok()) {
      ++refusals;
      now += milliseconds(refused.detail()->retry_after_ms);
      // The other bucket may lack more: at most one further refusal.
      if (const Status again = limits.Take("a", wanted, now); !again.ok()) {
        now += milliseconds(again.detail()->retry_after_ms);
        ASSERT_TRUE(limits.Take("a", wanted, now).ok()) << i;
      }
    }
    bytes += wanted;
  }
  EXPECT_GT(refusals, 1000);
  const double passed = std::chrono::duration<double>(now - kStart).count();
  EXPECT_LE(2000, 7 * (passed + 1) + 1);
  EXPECT_LE(static_cast<double>(bytes), 1e6 / 3 * (passed + 1) + 200'000);
}

/// When threads are told to come that are all there at once, and come then, half a millisecond late.
struct Coming {
  int most_tries = 0;
  double seconds = 0;  ///< until all are in
};
Coming ComeTogether(double per_second, int threads) {
  RateLimits limits({.calls_per_second = per_second});
  Coming coming;
  std::multimap<TimePoint, int> due;  // and how often each has come before
  for (int i = 0; i < threads; ++i) due.emplace(kStart, 0);
  while (!due.empty()) {
    const auto [now, before] = *due.begin();
    due.erase(due.begin());
    const Status status = limits.Take("a", 0, now);
    if (!status.ok()) {
      due.emplace(now + milliseconds(status.detail()->retry_after_ms) + std::chrono::microseconds(500),
                  before + 1);
      continue;
    }
    coming.most_tries = std::max(coming.most_tries, before + 1);
    coming.seconds = std::chrono::duration<double>(now - kStart).count();
  }
  return coming;
}

TEST(RateLimits, ThreadsAreToldToComeInTurn) {
  EXPECT_LE(ComeTogether(5, 10).most_tries, 2);
  EXPECT_LE(ComeTogether(5, 20).most_tries, 8);
  EXPECT_LE(ComeTogether(100, 300).most_tries, 5);
  EXPECT_LE(ComeTogether(100, 300).seconds, 2.1) << "as soon as that many may come";
}

TEST(RateLimits, WhatThoseLeaveWhoDoNotComeIsNotLost) {
  RateLimits limits({.calls_per_second = 5});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(limits.Take("a", 0, kStart).ok());
  for (int i = 0; i < 13; ++i)
    EXPECT_EQ(limits.Take("a", 0, kStart).detail()->retry_after_ms, 200 * (i % 5 + 1)) << i;
  EXPECT_TRUE(limits.Take("a", 0, kStart + milliseconds(200)).ok()) << "nothing is kept";
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(limits.Take("a", 0, kStart + seconds(1)).ok()) << i;
}

/// One thread that calls again at once, whatever others did before.
TEST(RateLimits, WhoIsAloneAgainHasAllOfIt) {
  RateLimits limits({.calls_per_second = 5});
  TimePoint now = kStart;
  for (int i = 0; i < 18; ++i) (void)limits.Take("a", 0, now);  // 13 of them never come again
  for (int calls = 0; calls < 500;) {
    const Status status = limits.Take("a", 0, now);
    calls += status.ok() ? 1 : 0;
    if (!status.ok()) now += milliseconds(status.detail()->retry_after_ms);
  }
  EXPECT_LE(now - kStart, seconds(101));
  now += seconds(1);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limits.Take("a", 0, now).ok()) << i;
  EXPECT_EQ(limits.Take("a", 0, now).detail()->retry_after_ms, 200);
}

TEST(RateLimits, WhoComesALittleEarlyWaitsForTheRest) {
  RateLimits limits({.calls_per_second = 5});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(limits.Take("a", 0, kStart).ok());
  EXPECT_EQ(limits.Take("a", 0, kStart).detail()->retry_after_ms, 200);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(limits.Take("a", 0, kStart + milliseconds(195)).detail()->retry_after_ms, 5) << i;
  EXPECT_TRUE(limits.Take("a", 0, kStart + milliseconds(200)).ok());
  EXPECT_EQ(limits.Take("a", 0, kStart + milliseconds(200)).detail()->retry_after_ms, 200);
}

TEST(RateLimits, RatesOfOnesOwnAreInsteadOfThoseOfAll) {
  RateLimits limits({.calls_per_second = 2});
  const Rates own{.calls_per_second = 4, .bytes_per_second = 1000};
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(limits.Take("a", 0, kStart, own).ok()) << i;
  const Status refused = limits.Take("a", 0, kStart, own);
  EXPECT_EQ(refused.detail()->allowed, "4 (calls_per_second in --policy)");
  EXPECT_EQ(refused.detail()->retry_after_ms, 250);
  EXPECT_TRUE(limits.Take("b", 2000, kStart, {.bytes_per_second = 1000}).ok());
  EXPECT_EQ(limits.Take("b", 500, kStart, {.bytes_per_second = 1000}).detail()->allowed,
            "1000 (bytes_per_second in --policy)");
  EXPECT_TRUE(limits.Take("c", 1 << 20, kStart).ok());
  EXPECT_TRUE(limits.Take("c", 1 << 20, kStart).ok());
  EXPECT_EQ(limits.Take("c", 0, kStart).detail()->allowed, "2 (--calls-per-second-per-identity)");
}

TEST(RateLimits, WhatWasTakenStaysTakenWhenTheRateChanges) {
  RateLimits limits({});
  const auto take = [&](double rate, TimePoint now) {
    return limits.Take("a", 0, now, {.calls_per_second = rate});
  };
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(take(4, kStart).ok()) << i;
  EXPECT_EQ(take(10, kStart).detail()->retry_after_ms, 100) << "no new bucket, but it fills faster";
  EXPECT_FALSE(take(10, kStart + milliseconds(99)).ok());
  EXPECT_TRUE(take(10, kStart + milliseconds(100)).ok()) << "as it was told";
  EXPECT_EQ(take(2, kStart + milliseconds(100)).detail()->retry_after_ms, 500);
  const TimePoint later = kStart + seconds(100);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(take(10, later).ok()) << i;
  EXPECT_TRUE(limits.Take("a", 0, later).ok()) << "no bound any more";
  EXPECT_EQ(take(10, later).detail()->retry_after_ms, 100) << "nor a full bucket for that";
}

TEST(RateLimits, OwnersWhoseBucketsAreFullAreForgotten) {
  RateLimits limits({.calls_per_second = 10});
  for (int i = 0; i < 100'000; ++i)
    EXPECT_TRUE(limits.Take("owner " + std::to_string(i), 0, kStart + milliseconds(i)).ok());
  EXPECT_LE(limits.known(), 512U) << "some hundred are within the last tenth of a second";
  EXPECT_GE(limits.known(), 90U);
}

TEST(RateLimits, WhoHasADebtOfBytesIsNotForgottenThoughHisCallsAreBack) {
  RateLimits limits({.calls_per_second = 10, .bytes_per_second = 1000});
  EXPECT_TRUE(limits.Take("a", 5000, kStart).ok());
  const TimePoint later = kStart + seconds(1);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(limits.Take("owner " + std::to_string(i), 1, later).ok());
  EXPECT_EQ(limits.Take("a", 500, later).detail()->retry_after_ms, 3500) << "3000 are still owed";
}

TEST(RateLimits, WhoHasADebtOfCallsIsNotForgottenThoughHisBytesAreBack) {
  RateLimits limits({.calls_per_second = 2, .bytes_per_second = 1000});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(limits.Take("a", 0, kStart).ok());
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(limits.Take("owner " + std::to_string(i), 1, kStart).ok());
  EXPECT_EQ(limits.Take("a", 0, kStart).detail()->retry_after_ms, 500);
}

}  // namespace
}  // namespace tilewire::engine
