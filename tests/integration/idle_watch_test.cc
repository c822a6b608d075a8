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
constexpr double kLeastRate = 100;
constexpr Clock::duration kLook = Clock::duration(kSlowFor) / 8;  ///< so often the watch looks

class IdleWatchTest : public ::testing::Test {
 protected:
  IdleWatchTest() {
    watch_.Start(owner_, &timer_,
                 {.idle_seconds = std::chrono::duration<double>(kIdle).count(),
                  .block_bytes = kWatchedBlock,
                  .least_rate = kLeastRate},
                 {.sharers = [this] { return sharers_; },
                  .moved = [this] { return moved_; },
                  .others_wait = [this] { return others_wait_; },
                  .held_up = [this] { return held_up_; }},
                 [this](Late why, bool cut) {
                   why_ = why;
                   given_up_ = cut;
                 });
  }
  ~IdleWatchTest() override {
    watch_.Stop();
    engine::testing::Flush(timer_);
  }
  /// In steps, after each of which the watch looks.
  void Pass(Clock::duration by) {
    constexpr Clock::duration kStep = kLook;
    for (; by > kStep; by -= kStep) engine::testing::Pass(time_, timer_, kStep);
    engine::testing::Pass(time_, timer_, by);
  }

  ManualTime time_;
  Timer timer_{&time_};
  std::shared_ptr<int> owner_ = std::make_shared<int>(0);
  int sharers_ = 1;
  uint64_t moved_ = 0;
  bool others_wait_ = false, held_up_ = false;
  std::optional<Late> why_;
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
  Pass(kOpenWithin - nanoseconds(1));
  EXPECT_FALSE(given_up_);
  Pass(kIdle / 8);
  EXPECT_EQ(given_up_, true);
  EXPECT_EQ(why_, Late::kNeverOpened);
}

TEST_F(IdleWatchTest, WhoIsSlowMayBeWhileNobodyWaits) {
  watch_.opened = watch_.reading = true;
  for (int i = 0; i < 100; ++i) {
    Pass(kLook);
    ++watch_.blocks_read;
    moved_ += static_cast<uint64_t>(kLeastRate);  // some 80% of what it should be
  }
  EXPECT_FALSE(given_up_);
  others_wait_ = true;
  Pass(kLook);
  EXPECT_EQ(given_up_, false) << "it can be told";
  EXPECT_EQ(why_, Late::kSlow);
}

TEST_F(IdleWatchTest, WhoKeepsThePaceStaysWhoeverWaits) {
  others_wait_ = true;
  watch_.opened = watch_.reading = true;
  for (int i = 0; i < 100; ++i) {
    Pass(kLook);
    ++watch_.blocks_read;
    moved_ += static_cast<uint64_t>(2 * kLeastRate);
  }
  Pass(kSlowFor - seconds(2));  // a pause is no crime
  moved_ += static_cast<uint64_t>(20 * kLeastRate);
  Pass(kSlowFor - seconds(2));
  EXPECT_FALSE(given_up_);
}

TEST_F(IdleWatchTest, TheServersOwnTimeIsNotTheClients) {
  others_wait_ = true;
  watch_.opened = true;  // and waits for lanes, blocks and memory, not for the client
  Pass(10 * kSlowFor);
  EXPECT_FALSE(given_up_);
}

TEST_F(IdleWatchTest, NorIsItWhereAnotherStreamOfTheJobWaitsForTheServer) {
  others_wait_ = held_up_ = true;
  watch_.opened = watch_.reading = true;
  Pass(10 * kIdle);
  EXPECT_FALSE(given_up_);
  held_up_ = false;
  Pass(kSlowFor + 2 * kLook);
  EXPECT_EQ(why_, Late::kSlow);
}

TEST_F(IdleWatchTest, AFastBeginningIsNoRightToStandStill) {
  others_wait_ = true;
  watch_.opened = watch_.reading = true;
  moved_ = 1'000'000;
  Pass(kLook);
  for (int i = 0; i < 12 && !given_up_; ++i) {
    Pass(kLook);
    ++watch_.blocks_read;
  }
  EXPECT_EQ(why_, Late::kSlow);
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
