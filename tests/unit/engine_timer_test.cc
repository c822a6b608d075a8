// The timer calls in order, on one thread, what was not cancelled.
#include "server/engine/timer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace tilewire::engine {
namespace {

using std::chrono::milliseconds;

/// Returns when the timer's thread has done everything that was due.
void Flush(Timer& timer) {
  std::promise<void> done;
  timer.Post([&done] { done.set_value(); });
  done.get_future().wait();
}

TEST(Timer, CallsInOrderOfTimeNotOfArming) {
  Timer timer;
  std::vector<int> order;
  std::promise<void> gate, last;
  timer.Post([&] { gate.get_future().wait(); });  // none may be called before all are armed
  const TimePoint now = Clock::now();
  timer.At(now + milliseconds(30), [&] {
    order.push_back(3);
    last.set_value();
  });
  timer.At(now + milliseconds(10), [&] { order.push_back(1); });
  timer.At(now + milliseconds(20), [&] { order.push_back(2); });
  gate.set_value();
  last.get_future().wait();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
  EXPECT_GE(Clock::now(), now + milliseconds(30));
}

TEST(Timer, EqualTimesKeepTheOrderOfArming) {
  Timer timer;
  std::vector<int> order, expected;
  const TimePoint when = Clock::now() + milliseconds(5);
  std::promise<void> last;
  for (int i = 0; i < 100; ++i) {
    timer.At(when, [&order, i] { order.push_back(i); });
    expected.push_back(i);
  }
  timer.At(when, [&] { last.set_value(); });
  last.get_future().wait();
  EXPECT_EQ(order, expected);
}

TEST(Timer, PostRunsInOrderOnItsOwnThreadAndAheadOfTheRest) {
  Timer timer;
  std::vector<int> order;
  std::promise<void> gate, blocked, far;
  timer.Post([&] {
    blocked.set_value();
    gate.get_future().wait();
  });
  blocked.get_future().wait();
  std::thread::id thread;
  timer.At(Clock::now() - milliseconds(1), [&] {
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

TEST(Timer, CancelledFunctionsDoNotRunAndAreDropped) {
  Timer timer;
  std::atomic<int> ran{0};
  auto owned = std::make_shared<int>(1);
  std::weak_ptr<int> weak = owned;
  const Timer::Id id =
      timer.At(Clock::now() + milliseconds(300), [&ran, kept = std::move(owned)] { ran += 1 + *kept; });
  timer.Cancel(id);
  EXPECT_TRUE(weak.expired());
  std::promise<void> later;
  timer.At(Clock::now() + milliseconds(310), [&] { later.set_value(); });
  later.get_future().wait();
  EXPECT_EQ(ran, 0);
  timer.Cancel(id);  // again, 0, and one that has run: nothing happens
  timer.Cancel(0);
  const Timer::Id run = timer.Post([&ran] { ++ran; });
  Flush(timer);
  timer.Cancel(run);
  EXPECT_EQ(ran, 1);
}

TEST(Timer, FunctionsMayArmAndCancelTimers) {
  Timer timer;
  std::promise<void> done;
  std::atomic<bool> wrong{false};
  timer.Post([&] {
    const Timer::Id id = timer.Post([&] { wrong = true; });
    timer.Cancel(id);
    timer.At(Clock::now() + milliseconds(1), [&] { done.set_value(); });
  });
  done.get_future().wait();
  EXPECT_FALSE(wrong);
}

TEST(Timer, AnEarlierOneWakesTheSleepingThread) {
  Timer timer;
  timer.At(Clock::now() + std::chrono::hours(1), [] { FAIL(); });
  std::this_thread::sleep_for(milliseconds(2));  // asleep until then
  std::promise<void> soon;
  const TimePoint begin = Clock::now();
  timer.At(begin + milliseconds(1), [&] { soon.set_value(); });
  soon.get_future().wait();
  EXPECT_LT(Clock::now() - begin, std::chrono::minutes(1));
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
      owner->id = timer.At(Clock::now() + std::chrono::hours(1), [&ran] { ran = true; });
      timer.At(Clock::now() + std::chrono::hours(2), [owner] {});
    }
  }
  EXPECT_EQ(ends, 50);  // each dropped once, none of their posts run
  EXPECT_FALSE(ran);
}

TEST(Timer, DestructionWaitsForTheFunctionThatRuns) {
  std::atomic<bool> ended{false};
  {
    Timer timer;
    std::promise<void> started;
    timer.Post([&] {
      started.set_value();
      std::this_thread::sleep_for(milliseconds(20));
      ended = true;
    });
    started.get_future().wait();
  }
  EXPECT_TRUE(ended);
}

TEST(Timer, ArmedAndCancelledFromManyThreads) {
  Timer timer;
  std::atomic<int> ran{0}, kept{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const auto delay = std::chrono::microseconds((t * 7 + i) % 50);
        if (i % 3 == 0) {
          timer.Cancel(timer.At(Clock::now() + std::chrono::hours(1), [] { FAIL(); }));
        } else {
          timer.At(Clock::now() + delay, [&] { ++ran; });
          ++kept;
        }
      }
    });
  for (auto& thread : threads) thread.join();
  std::promise<void> last;
  timer.At(Clock::now() + milliseconds(5), [&] { last.set_value(); });
  last.get_future().wait();
  EXPECT_EQ(ran, kept);
}

}  // namespace
}  // namespace tilewire::engine
