// The threads that take calls: how many are awake, and who does what.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <future>
#include <set>
#include <thread>
#include <utility>

#include "tests/integration/crew_fixture.h"
#include "tests/unit/waiting.h"

namespace tilewire::rpc {
namespace {

TEST_F(CrewTest, WhoWaitsDoesItAll) {
  Crew crew(&queue_);
  const Ended ended{&queue_};
  crew.Start(4);
  ASSERT_TRUE(testing::Eventually([&] { return crew.resting() == 3; }));
  std::set<std::thread::id> threads;
  for (int i = 0; i < 200; ++i) threads.insert(ThreadOfNext());
  EXPECT_EQ(threads.size(), 1U) << "nobody was behind, so nobody had to be woken";
}

/// With that bound the first calls keep it awake for good: it serves all the same, and ends when it is told
/// to. (That staying awake is worth it is a matter of time, for benchmarks.)
TEST_F(CrewTest, WhoWaitsAwakeDoesWhatComesAndEnds) {
  Crew crew(&queue_, {.close = std::chrono::hours(1)});
  const Ended ended{&queue_};
  crew.Start(4);
  for (int i = 0; i < 200; ++i) {
    std::promise<void> taken;
    Post(&queue_, [&] {
      Crew::Took(false);
      taken.set_value();
    });
    taken.get_future().wait();
  }
  EXPECT_TRUE(testing::Eventually([&] { return crew.resting() == 3; }));
}

/// One thread is kept in the middle of something; another one goes on.
TEST_F(CrewTest, WhoIsBusyIsRelieved) {
  std::promise<void> go_on;  // these outlive the crew, whose thread may ask for them as late as it ends
  std::promise<std::thread::id> busy;
  Crew crew(&queue_);
  const Ended ended{&queue_};
  crew.Start(2);
  Post(&queue_, [&] {
    Crew::Took(true);
    busy.set_value(std::this_thread::get_id());
    go_on.get_future().wait();
  });
  const std::thread::id other = busy.get_future().get();
  EXPECT_NE(ThreadOfNext(), other);
  go_on.set_value();
}

/// A long call, then four small ones, every second of which stays: two threads have those, no third is
/// called.
TEST_F(CrewTest, OnlySomeServeSmallCallsTogether) {
  std::promise<void> go_on;
  const std::shared_future<void> allowed = go_on.get_future().share();
  std::atomic<int> stay{0};
  std::atomic<bool> last{false};
  Works works;
  const auto take_and_stay = [&, allowed](bool busy) {
    Crew::Took(busy);
    ++stay;
    allowed.wait();
  };
  Crew crew(&queue_, {.close = std::chrono::hours(1), .together = 2});
  const Ended ended{&queue_};
  crew.Start(5);
  EXPECT_TRUE(testing::Eventually([&] { return crew.resting() == 4; }));
  works.Post(&queue_, [&] { take_and_stay(true); });
  for (int small = 1; small <= 2; ++small) {
    EXPECT_TRUE(testing::Eventually([&] { return stay == small; }));
    works.Post(&queue_, [&] {
      works.Post(&queue_, [&] { take_and_stay(false); });  // there before this one is done
      Crew::Took(false);
    });
  }
  EXPECT_TRUE(testing::Eventually([&] { return stay == 3; }));
  works.Post(&queue_, [&] { last = true; });
  EXPECT_TRUE(crew.resting() == 2 && !last);
  go_on.set_value();
  EXPECT_TRUE(testing::Eventually([&] { return last && crew.resting() == 4; })) << "one is enough to wait";
}

/// However many waited awake, one is left when nothing comes any more.
TEST_F(CrewTest, OneIsLeftOfThoseWhoWaitAwake) {
  Works works;
  Crew crew(&queue_, {.close = std::chrono::milliseconds(20), .together = 3});
  const Ended ended{&queue_};
  for (int i = 0; i < 500; ++i) works.Post(&queue_, [] { Crew::Took(false); });
  crew.Start(4);
  EXPECT_TRUE(testing::Eventually([&] { return crew.resting() == 3; }));
}

/// Else each call wakes another core.
TEST_F(CrewTest, WhoRestedLastIsCalledFirst) {
  Crew crew(&queue_);
  const Ended ended{&queue_};
  crew.Start(4);
  std::set<std::thread::id> threads;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(testing::Eventually([&] { return crew.resting() == 3; }));
    std::promise<void> go_on;
    std::promise<std::thread::id> busy;
    Work work([&] {
      Crew::Took(true);
      busy.set_value(std::this_thread::get_id());
      go_on.get_future().wait();
    });
    work.PutInto(&queue_);
    threads.insert(busy.get_future().get());
    threads.insert(ThreadOfNext());
    go_on.set_value();
    work.Wait();
  }
  EXPECT_EQ(threads.size(), 2U) << "who was busy rests last";
}

/// Calls that its thread has to wait for are not in a row.
TEST_F(CrewTest, WhoHasToWaitIsNotBehind) {
  Works works;
  Crew crew(&queue_, {.close = std::chrono::hours(1), .together = 2, .in_a_row = 2});
  const Ended ended{&queue_};
  crew.Start(2);
  ASSERT_TRUE(testing::Eventually([&] { return crew.resting() == 1; }));
  // Of the thread that looks, so that it has looked often, however slow this machine is.
  const auto looked_ns = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
  };
  for (int i = 0; i < 20; ++i) {
    std::promise<std::pair<clockid_t, int>> taken;
    works.Post(&queue_, [&] {
      Crew::Took(false);
      clockid_t clock{};
      pthread_getcpuclockid(pthread_self(), &clock);
      taken.set_value({clock, crew.resting()});
    });
    const auto [clock, resting] = taken.get_future().get();
    ASSERT_EQ(resting, 1) << "nobody is called";
    const auto since = looked_ns(clock);
    ASSERT_TRUE(testing::Eventually([&, of = clock] { return looked_ns(of) > since + 2'000'000; }));
  }
}

TEST_F(CrewTest, WhatWaitedAlreadyBringsMoreThreads) {
  constexpr int kThreads = 3;
  Works works;
  std::promise<void> go_on;
  const std::shared_future<void> allowed = go_on.get_future().share();
  std::atomic<int> at_once{0};
  Crew crew(&queue_);
  const Ended ended{&queue_};
  // All are there before anybody looks.
  for (int i = 0; i < kThreads; ++i)
    works.Post(&queue_, [&, allowed] {
      Crew::Took(false);
      ++at_once;
      allowed.wait();
    });
  crew.Start(kThreads);
  EXPECT_TRUE(testing::Eventually([&] { return at_once == kThreads; }));
  go_on.set_value();
}

TEST(Crew, ServesAllThatIsLeftWhenItGoes) {
  for (const int threads : {0, 1, 3}) {
    grpc::CompletionQueue queue;
    std::atomic<int> done{0};
    {
      Crew crew(&queue);
      if (threads > 0) crew.Start(threads);
      for (int i = 0; i < 50; ++i) Post(&queue, [&done] { ++done; });
      queue.Shutdown();
    }
    EXPECT_EQ(done, 50) << threads << " threads";
  }
}

}  // namespace
}  // namespace tilewire::rpc
