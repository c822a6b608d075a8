// The timer calls in order, on one thread, what was not cancelled.
#include "server/base/timer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/engine_time_testing.h"

namespace tilewire::engine {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::Flush;
using testing::Pass;

class TimerTest : public ::testing::Test {
 protected:
  ManualTime time_;
};

TEST_F(TimerTest, CallsInOrderOfTimeNotOfArmingAndNeverEarly) {
  Timer timer(&time_);
  std::vector<int> order;
  const TimePoint now = time_.Now();
  timer.At(now + hours(30), [&] { order.push_back(3); });
  timer.At(now + hours(10), [&] { order.push_back(1); });
  timer.At(now + hours(20), [&] { order.push_back(2); });
  Pass(time_, timer, hours(10) - std::chrono::nanoseconds(1));
  EXPECT_EQ(order, std::vector<int>());
  Pass(time_, timer, std::chrono::nanoseconds(1));
  EXPECT_EQ(order, std::vector{1});
  Pass(time_, timer, hours(100));
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST_F(TimerTest, EqualTimesKeepTheOrderOfArming) {
  Timer timer(&time_);
  std::vector<int> order, expected;
  const TimePoint when = time_.Now() + milliseconds(5);
  for (int i = 0; i < 100; ++i) {
    timer.At(when, [&order, i] { order.push_back(i); });
    expected.push_back(i);
  }
  Pass(time_, timer, milliseconds(5));
  EXPECT_EQ(order, expected);
}

TEST_F(TimerTest, PostRunsInOrderOnItsOwnThreadAndAheadOfTheRest) {
  Timer timer(&time_);
  std::vector<int> order;
  std::promise<void> gate, blocked, far;
  timer.Post([&] {
    blocked.set_value();
    gate.get_future().wait();
  });
  blocked.get_future().wait();
  std::thread::id thread;
  timer.At(time_.Now() - milliseconds(1), [&] {
    order.push_back(9);
    far.set_value();
  });
  for (int i = 0; i < 3; ++i)
    timer.Post([&, i] {
      order.push_back(i);
      thread = std::this_thread::get_id();
    });
  gate.set_value();
  far.get_future().wait();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 9}));
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST_F(TimerTest, CancelledFunctionsDoNotRunAndAreDropped) {
  Timer timer(&time_);
  std::atomic<int> ran{0};
  auto owned = std::make_shared<int>(1);
  std::weak_ptr<int> weak = owned;
  const Timer::Id id =
      timer.At(time_.Now() + hours(1), [&ran, kept = std::move(owned)] { ran += 1 + *kept; });
  timer.Cancel(id);
  EXPECT_TRUE(weak.expired());
  Pass(time_, timer, hours(2));
  EXPECT_EQ(ran, 0);
  timer.Cancel(id);  // again, 0, and one that has run: nothing happens
  timer.Cancel(0);
  const Timer::Id run = timer.Post([&ran] { ++ran; });
  Flush(timer);
  timer.Cancel(run);
  EXPECT_EQ(ran, 1);
}

TEST_F(TimerTest, FunctionsMayArmAndCancelTimers) {
  Timer timer(&time_);
  std::promise<void> armed, done;
  std::atomic<bool> wrong{false};
  timer.Post([&] {
    const Timer::Id id = timer.Post([&] { wrong = true; });
    timer.Cancel(id);
    timer.At(time_.Now() + hours(1), [&] { done.set_value(); });
    armed.set_value();
  });
  armed.get_future().wait();
  time_.Advance(hours(1));
  done.get_future().wait();
  EXPECT_FALSE(wrong);
}

/// Another's time, and it tells what a timer does with it.
class WatchedTime final : public TimeSource {
 public:
  explicit WatchedTime(TimeSource* time = SteadyTime()) : time_(time) {}
  TimePoint Now() const override { return time_->Now(); }
  TimePoint SleepUntil(TimePoint when) const override {
    asked.release();
    return time_->SleepUntil(when);
  }
  void Watch(const void* watcher, std::function<void()> on_jump) override {
    time_->Watch(watcher, std::move(on_jump));
  }
  void Unwatch(const void* watcher) override {
    let_go.release();
    time_->Unwatch(watcher);
  }

  /// Of the thread that falls asleep, before it gives up the timer's lock.
  mutable std::counting_semaphore<> asked{0};
  std::binary_semaphore let_go{0};  ///< by the destructor

 private:
  TimeSource* const time_;
};

TEST(Timer, AnEarlierOneWakesTheThreadThatSleepsByTheClock) {
  WatchedTime time;
  Timer timer(&time);
  timer.At(Clock::now() + hours(1), [] { FAIL(); });
  time.asked.acquire();
  std::promise<void> soon;
  const TimePoint begin = Clock::now();
  timer.At(begin + milliseconds(1), [&] { soon.set_value(); });
  soon.get_future().wait();
  EXPECT_GE(Clock::now() - begin, milliseconds(1));
  EXPECT_LT(Clock::now() - begin, std::chrono::minutes(1));
}

TEST(Timer, SleepsNoLongerThanUntilATimeWhoseTimerIsGone) {
  ManualTime manual;
  WatchedTime time(&manual);
  Timer timer(&time);
  const Timer::Id id = timer.At(manual.Now() + hours(1), [] { FAIL(); });
  time.asked.acquire();
  timer.Cancel(id);
  manual.Advance(hours(2));  // nothing is due, but whoever comes now relies on the thread being awake
  Flush(timer);
}

TEST(Timer, GoesByTheClockUnlessToldOtherwise) {
  Timer timer;
  const TimePoint begin = Clock::now();
  const TimePoint now = timer.Now();
  EXPECT_GE(now, begin);
  EXPECT_LE(now, Clock::now());
  std::promise<void> soon;
  timer.At(begin + milliseconds(1), [&] { soon.set_value(); });
  soon.get_future().wait();
  EXPECT_GE(Clock::now() - begin, milliseconds(1));
}

/// Something like a job: cancels its timer when it goes, and may hand things to the timer as it does.
struct Owner {
  Timer* timer;
  Timer::Id id = 0;
  int* ends;
  bool post;
  ~Owner() {
    timer->Cancel(id);
    if (post) timer->Post([count = ends] { *count += 100; });
    ++*ends;
  }
};

TEST(Timer, DestructionDropsWhatIsArmedWhileTheTimerIsWhole) {
  int ends = 0;
  bool ran = false;
  {
    Timer timer;
    for (int i = 0; i < 50; ++i) {
      std::shared_ptr<Owner> owner(new Owner{.timer = &timer, .ends = &ends, .post = i % 2 == 0});
      owner->id = timer.At(Clock::now() + hours(1), [&ran] { ran = true; });
      timer.At(Clock::now() + hours(2), [owner] {});
    }
  }
  EXPECT_EQ(ends, 50);  // each dropped once, none of their posts run
  EXPECT_FALSE(ran);
}

TEST(Timer, DestructionWaitsForTheFunctionThatRuns) {
  std::atomic<bool> ended{false};
  WatchedTime time;
  {
    Timer timer(&time);
    std::promise<void> started;
    timer.Post([&] {
      started.set_value();
      time.let_go.acquire();  // the destructor has begun
      ended = true;
    });
    started.get_future().wait();
  }
  EXPECT_TRUE(ended);
}

TEST_F(TimerTest, ArmedAndCancelledFromManyThreadsWhileTimePasses) {
  Timer timer(&time_);
  std::atomic<int> ran{0}, kept{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const auto delay = std::chrono::microseconds((t * 7 + i) % 50);
        if (i % 3 == 0) {
          timer.Cancel(timer.At(time_.Now() + hours(1), [] { FAIL(); }));
        } else {
          timer.At(time_.Now() + delay, [&] { ++ran; });
          ++kept;
        }
        time_.Advance(std::chrono::microseconds(i % 5));
      }
    });
  for (auto& thread : threads) thread.join();
  Pass(time_, timer, milliseconds(5));
  EXPECT_EQ(ran, kept);
}

}  // namespace
}  // namespace tilewire::engine
