// What counts as a stall, and from when on: the watch alone, over time that the test owns.
#include "server/rpc/transport/idle_watch.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "tests/unit/engine_time_testing.h"

namespace tilewire::rpc {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr seconds kIdle(40);
constexpr int64_t kWatchedBlock = 1000;

class IdleWatchTest : public ::testing::Test {
 protected:
  IdleWatchTest() {
    watch_.Start(
        owner_, &timer_, std::chrono::duration<double>(kIdle).count(), kWatchedBlock,
        [this] { return sharers_; }, [this](bool cut) { given_up_ = cut; });
  }
  ~IdleWatchTest() override {
    watch_.Stop();
    engine::testing::Flush(timer_);
  }
  /// In steps, after each of which the watch looks.
  void Pass(Clock::duration by) {
    constexpr Clock::duration kStep = kIdle / 8;
    for (; by > kStep; by -= kStep) engine::testing::Pass(time_, timer_, kStep);
    engine::testing::Pass(time_, timer_, by);
  }

  ManualTime time_;
  Timer timer_{&time_};
  std::shared_ptr<int> owner_ = std::make_shared<int>(0);
  int sharers_ = 1;
  std::optional<bool> given_up_;  ///< and whether the client cannot be told
  IdleWatch watch_;
};

TEST_F(IdleWatchTest, AClientIsWaitedForExactlySoLong) {
  watch_.opened = watch_.reading = true;
  Pass(kIdle - nanoseconds(1));
  EXPECT_FALSE(given_up_);
  Pass(kIdle / 8);  // it looks eight times in that time
  EXPECT_EQ(given_up_, false);
}

TEST_F(IdleWatchTest, OnlyTimeOfWaitingCounts) {
  watch_.opened = true;
  Pass(10 * kIdle);  // the server is busy
  EXPECT_FALSE(given_up_);
  watch_.reading = true;
  Pass(kIdle - nanoseconds(1));
  EXPECT_FALSE(given_up_);
  watch_.reading = false;
  Pass(kIdle);
  watch_.reading = true;
  Pass(kIdle - nanoseconds(1));
  EXPECT_FALSE(given_up_);
  Pass(kIdle / 8);
  EXPECT_TRUE(given_up_);
}

TEST_F(IdleWatchTest, BlocksMessagesAndABlockOfOutputAreProgress) {
  watch_.opened = watch_.reading = true;
  for (int i = 0; i < 5; ++i) {
    Pass(kIdle * 3 / 4);
    ++watch_.blocks_read;
    Pass(kIdle * 3 / 4);
    ++watch_.steps;
  }
  watch_.reading = false;
  watch_.writing = true;
  for (int i = 0; i < 5; ++i) {
    Pass(kIdle * 3 / 4);
    watch_.bytes_written += kWatchedBlock;
  }
  EXPECT_FALSE(given_up_);
  for (int i = 0; i < 8; ++i) {  // less than a block in all
    Pass(kIdle / 8);
    watch_.bytes_written += kWatchedBlock / 10;
  }
  Pass(kIdle / 8);
  EXPECT_EQ(given_up_, true) << "who takes nothing cannot be told";
}

TEST_F(IdleWatchTest, WhoNeverOpenedIsCutOff) {
  watch_.reading = true;
  Pass(kIdle + kIdle / 8);
  EXPECT_EQ(given_up_, true);
}

TEST_F(IdleWatchTest, StreamsThatShareAnUplinkHaveTimeForAllOfThem) {
  watch_.opened = watch_.reading = true;
  sharers_ = 3;
  Pass(3 * kIdle - nanoseconds(1));
  EXPECT_FALSE(given_up_);
  Pass(kIdle / 8);
  EXPECT_TRUE(given_up_);
}

TEST_F(IdleWatchTest, NothingIsWatchedThatHasEnded) {
  watch_.opened = watch_.reading = true;
  Pass(kIdle / 2);
  watch_.Stop();
  Pass(10 * kIdle);
  EXPECT_FALSE(given_up_);
}

TEST_F(IdleWatchTest, NothingIsWatchedWhoseOwnerIsGone) {
  watch_.opened = watch_.reading = true;
  owner_.reset();
  Pass(10 * kIdle);
  EXPECT_FALSE(given_up_);
}

}  // namespace
}  // namespace tilewire::rpc
