// Whoever keeps the thread that hands it over keeps no others waiting, and not the end either.
#include "server/rpc/listener/hand_overs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <set>
#include <utility>
#include <vector>

#include "server/rpc/transport/progress.h"
#include "tests/unit/waiting.h"

namespace tilewire::rpc {
namespace {

using std::chrono::milliseconds;

class HandOversTest : public ::testing::Test {
 protected:
  void TearDown() override { LetGo(); }
  void LetGo() {
    if (!std::exchange(went_, true)) go_.set_value();
  }
  bool Inside(int count) {
    return testing::Eventually([&] { return inside_ == count; });
  }
  std::promise<void> go_;
  bool went_ = false;
  const std::shared_future<void> may_go_ = go_.get_future().share();
  std::atomic<int> inside_{0};
  Mutex mutex_;
  std::set<int> doors_ TILEWIRE_GUARDED_BY(mutex_);
  /// Connections below 100 stay until they may go.
  HandOvers hand_overs_{[this](FileDescriptor, Entrance by) {
    {
      const MutexLock lock(mutex_);
      if (by.id < 100) {
        EXPECT_TRUE(doors_.insert(by.door).second) << "nobody else goes by it";
      }
    }
    ++inside_;
    if (by.id < 100) may_go_.wait();
  }};
};

TEST_F(HandOversTest, WhoStaysKeepsNobodyWaiting) {
  for (int i = 0; i < Entrance::kDoors - 1; ++i) {
    hand_overs_.Give({}, {.id = static_cast<uint64_t>(1 + i)});
    hand_overs_.Give({}, {.id = static_cast<uint64_t>(101 + i)});
    if (i == 0) {
      ASSERT_TRUE(Inside(1));
    }
    EXPECT_TRUE(hand_overs_.LookAfter(Clock::now() + milliseconds(51)).empty());
    ASSERT_TRUE(Inside(2 * i + 2)) << i;
  }
  LetGo();
}

TEST_F(HandOversTest, TheEndIsToldWhoKeepsIt) {
  hand_overs_.Give({}, {.id = 1});
  ASSERT_TRUE(Inside(1));
  hand_overs_.Give({}, {.id = 2});
  EXPECT_TRUE(hand_overs_.LookAfter({}).empty());
  std::future<void> stopped = std::async(std::launch::async, [&] { hand_overs_.Stop(); });
  std::vector<HandOvers::Id> keep;
  EXPECT_TRUE(testing::Eventually([&] {
    keep = hand_overs_.LookAfter({});
    return !keep.empty();
  }));
  EXPECT_EQ(keep, std::vector<HandOvers::Id>{1});
  LetGo();
  stopped.get();
  EXPECT_EQ(inside_, 1) << "who waited is closed";
}

TEST(Progress, StandsWhoMakesNoneForLong) {
  Progress progress;
  TimePoint now{};
  const auto after = [&](int ms) { return progress.Stands(now += milliseconds(ms)); };
  EXPECT_FALSE(after(0));
  EXPECT_FALSE(after(1000)) << "one look is none: who looks may have stood himself";
  EXPECT_TRUE(after(1));
  progress.Made();
  EXPECT_FALSE(after(1000));
  EXPECT_FALSE(after(50));
  EXPECT_FALSE(after(39));
  EXPECT_TRUE(after(1));
}

}  // namespace
}  // namespace tilewire::rpc
