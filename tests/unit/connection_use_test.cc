// What calls of one connection may take: places, and buckets that time fills.
#include "server/rpc/listener/connection_use.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace tilewire::rpc {
namespace {

using std::chrono::milliseconds;

const TimePoint kStart = TimePoint() + std::chrono::hours(1);

void ExpectBusy(const Status& status, const std::string& field, const std::string& value,
                const std::string& allowed, int64_t retry_ms) {
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.reason(), "BUSY");
  ASSERT_TRUE(status.detail());
  EXPECT_EQ(status.detail()->field, field);
  EXPECT_EQ(status.detail()->value, value);
  EXPECT_EQ(status.detail()->allowed, allowed);
  EXPECT_EQ(status.detail()->retry_after_ms, retry_ms);
  EXPECT_NE(status.message().find(allowed), std::string_view::npos) << status.message();
}

TEST(ConnectionUse, HasPlacesForCallsAndForStreams) {
  ConnectionUse use;
  const UseLimits limits{.calls = 3, .streams = 1};
  EXPECT_TRUE(limits.any());
  EXPECT_FALSE(UseLimits().any());
  EXPECT_TRUE(use.Enter(limits, true, kStart).ok());
  ExpectBusy(use.Enter(limits, true, kStart), "streams of the connection", "1",
             "1 (--max-streams-per-connection)", 250);
  EXPECT_TRUE(use.Enter(limits, false, kStart).ok()) << "nothing was taken by who was refused";
  EXPECT_TRUE(use.Enter(limits, false, kStart).ok());
  ExpectBusy(use.Enter(limits, false, kStart), "calls of the connection", "3",
             "3 (--max-calls-per-connection)", 250);
  use.Leave(true);
  EXPECT_TRUE(use.Enter(limits, true, kStart).ok()) << "a stream's place is a call's, too";
  ExpectBusy(use.Enter(limits, false, kStart), "calls of the connection", "3",
             "3 (--max-calls-per-connection)", 250);
}

TEST(ConnectionUse, CallsASecondComeAtOnceOrEvenly) {
  ConnectionUse use;
  const UseLimits limits{.calls_per_second = 4};
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(use.Enter(limits, false, kStart).ok()) << i;
  ExpectBusy(use.Enter(limits, false, kStart), "calls a second of the connection", "more",
             "4 (--calls-per-second-per-connection)", 250);
  EXPECT_FALSE(use.Enter(limits, false, kStart + milliseconds(249)).ok());
  EXPECT_TRUE(use.Enter(limits, false, kStart + milliseconds(250)).ok()) << "as it was told";
  EXPECT_FALSE(use.Enter(limits, false, kStart + milliseconds(250)).ok());
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(use.Enter(limits, false, kStart + std::chrono::hours(1)).ok()) << i;
  EXPECT_FALSE(use.Enter(limits, false, kStart + std::chrono::hours(1)).ok())
      << "no more than a second's worth is saved";
}

TEST(ConnectionUse, ThreadsAreToldToComeInTurn) {
  ConnectionUse use;
  const UseLimits limits{.calls_per_second = 4};
  const auto told = [&](milliseconds at) {
    return use.Enter(limits, false, kStart + at).detail()->retry_after_ms;
  };
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(use.Enter(limits, false, kStart).ok());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(told(milliseconds(0)), 250 * (i % 4 + 1)) << i;
  EXPECT_EQ(told(milliseconds(240)), 10) << "he came a little early";
  for (int i = 1; i <= 10; ++i)
    EXPECT_TRUE(use.Enter(limits, false, kStart + i * milliseconds(250)).ok()) << i;
  EXPECT_EQ(told(milliseconds(2500)), 250) << "all have come";
}

TEST(ConnectionUse, NoTwoThreadsAreToldTheSame) {
  ConnectionUse use;
  const UseLimits limits{.calls_per_second = 1000};
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(use.Enter(limits, false, kStart).ok());
  std::vector<int64_t> told(1000);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = t; i < told.size(); i += 4)
        told[i] = use.Enter(limits, false, kStart).detail()->retry_after_ms;
    });
  for (auto& thread : threads) thread.join();
  std::ranges::sort(told);
  for (size_t i = 0; i < told.size(); ++i) ASSERT_EQ(told[i], static_cast<int64_t>(i) + 1);
}

TEST(ConnectionUse, BytesLeaveADebt) {
  ConnectionUse use;
  const UseLimits limits{.bytes_per_second = 1000};
  EXPECT_TRUE(use.Enter(limits, false, kStart).ok());
  use.Moved(limits, 1000, kStart);
  EXPECT_TRUE(use.Enter(limits, false, kStart).ok()) << "a second's worth is none";
  use.Moved(limits, 2500, kStart);
  ExpectBusy(use.Enter(limits, false, kStart), "bytes a second of the connection", "more",
             "1000 (--bytes-per-second-per-connection)", 2500);
  use.Moved(limits, 500, kStart + milliseconds(1000));
  ExpectBusy(use.Enter(limits, false, kStart + milliseconds(1000)), "bytes a second of the connection",
             "more", "1000 (--bytes-per-second-per-connection)", 2000);
  EXPECT_TRUE(use.Enter(limits, false, kStart + milliseconds(3000)).ok());
}

TEST(ConnectionUse, AsManyAsASecondBringsComeAtOnce) {
  for (const int rate : {3, 7, 600, 1'000'000}) {
    ConnectionUse use;
    const UseLimits limits{.calls_per_second = static_cast<double>(rate)};
    for (int i = 0; i < rate; ++i) ASSERT_TRUE(use.Enter(limits, false, kStart).ok()) << i << " of " << rate;
    EXPECT_FALSE(use.Enter(limits, false, kStart).ok()) << rate;
  }
}

TEST(ConnectionUse, LessThanOneASecond) {
  ConnectionUse use;
  const UseLimits limits{.calls_per_second = 0.5};
  EXPECT_TRUE(use.Enter(limits, false, kStart).ok());
  EXPECT_FALSE(use.Enter(limits, false, kStart + milliseconds(1999)).ok());
  EXPECT_TRUE(use.Enter(limits, false, kStart + milliseconds(2000)).ok());
}

TEST(ConnectionUse, WhoIsRefusedTakesNothing) {
  ConnectionUse use;
  const UseLimits limits{.calls = 2, .streams = 1, .calls_per_second = 1, .bytes_per_second = 1000};
  EXPECT_TRUE(use.Enter(limits, true, kStart).ok());
  use.Leave(true);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(use.Enter(limits, true, kStart).ok()) << "by its calls a second";
  use.Moved(limits, 3000, kStart);
  for (int i = 0; i < 5; ++i)
    EXPECT_FALSE(use.Enter(limits, true, kStart + milliseconds(1000)).ok()) << "by its bytes a second";
  EXPECT_TRUE(use.Enter(limits, true, kStart + milliseconds(2000)).ok())
      << "places, calls and bytes are left";
}

TEST(ConnectionUse, DebtsThatNobodyCanPayStayDebts) {
  ConnectionUse use;
  const UseLimits limits{.bytes_per_second = 1};
  for (int i = 0; i < 100; ++i) use.Moved(limits, size_t{1} << 60, kStart);
  const Status status = use.Enter(limits, false, kStart + std::chrono::hours(24 * 365));
  ASSERT_TRUE(status.detail());
  EXPECT_GT(status.detail()->retry_after_ms, 1'000'000'000);
}

TEST(ConnectionUse, ClocksThatStandStillOrGoBackBringNothing) {
  ConnectionUse use;
  const UseLimits limits{.calls_per_second = 1};
  EXPECT_TRUE(use.Enter(limits, false, kStart).ok());
  EXPECT_FALSE(use.Enter(limits, false, kStart - milliseconds(5000)).ok());
  EXPECT_FALSE(use.Enter(limits, false, kStart + milliseconds(900)).ok());
  EXPECT_TRUE(use.Enter(limits, false, kStart + milliseconds(1000)).ok());
}

TEST(ConnectionUse, WhoIsRefusedIsInNobodysWay) {
  ConnectionUse use;
  const UseLimits limits{.calls = 2, .streams = 1};
  ASSERT_TRUE(use.Enter(limits, true, kStart).ok());
  std::atomic<bool> over{false};
  std::thread streams([&] {
    while (!over) EXPECT_FALSE(use.Enter(limits, true, kStart).ok());
  });
  int refused = 0;
  for (int i = 0; i < 200'000; ++i) {
    if (use.Enter(limits, false, kStart).ok())
      use.Leave(false);
    else
      ++refused;
  }
  over = true;
  streams.join();
  EXPECT_EQ(refused, 0);
}

TEST(ConnectionUse, ThreadsNeverShareAPlace) {
  ConnectionUse use;
  const UseLimits limits{.calls = 3, .bytes_per_second = 1e12};
  std::atomic<int> there{0}, most{0}, entered{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        if (!use.Enter(limits, i % 2 == 0, kStart).ok()) continue;
        ++entered;
        const int now = ++there;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        use.Moved(limits, 10, kStart);
        --there;
        use.Leave(i % 2 == 0);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_GE(entered, 2000) << "whoever is alone gets in";
  EXPECT_LE(most, 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(use.Enter(limits, true, kStart).ok()) << "all places came back";
}

}  // namespace
}  // namespace tilewire::rpc
