// The threads that take calls: how many are awake, who does what, and who waits in line.
#include <grpcpp/alarm.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <set>
#include <vector>

#include "server/rpc/transport/coroutine.h"
#include "server/rpc/transport/crew.h"
#include "tests/unit/waiting.h"

namespace tilewire::rpc {
namespace {

/// Runs its work on a thread of the queue.
class Work final : public Event {
 public:
  explicit Work(std::function<void()> work) : work_(std::move(work)) {}
  /// It is in the queue when this returns: an alarm that is due comes from a timer's thread, one that is
  /// cancelled at once.
  void PutInto(grpc::CompletionQueue* queue) {
    alarm_.Set(queue, gpr_inf_future(GPR_CLOCK_REALTIME), static_cast<Event*>(this));
    alarm_.Cancel();
  }
  void Wait() { done_.get_future().wait(); }

 private:
  void Complete(bool) override {
    work_();
    done_.set_value();
  }
  std::function<void()> work_;
  grpc::Alarm alarm_;
  std::promise<void> done_;
};

/// Lives until all work that was posted is done.
class Works {
 public:
  ~Works() {
    for (auto& work : works_) work.Wait();
  }
  void Post(grpc::CompletionQueue* queue, std::function<void()> work) {
    works_.emplace_back(std::move(work)).PutInto(queue);
  }

 private:
  std::deque<Work> works_;
};

Detached Post(grpc::CompletionQueue* queue, std::function<void()> work) {
  co_await Onto(queue);
  work();
}

class CrewTest : public ::testing::Test {
 protected:
  std::thread::id ThreadOfNext() {
    std::promise<std::thread::id> thread;
    Post(&queue_, [&] { thread.set_value(std::this_thread::get_id()); });
    return thread.get_future().get();
  }

  /// The queue is shut down before its crew goes.
  struct Ended {
    grpc::CompletionQueue* queue;
    ~Ended() { queue->Shutdown(); }
  };
  grpc::CompletionQueue queue_;
};

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

Detached Call(std::function<void()> begins, const void* whose = nullptr, bool busy = false) {
  Crew::Took(busy);
  if (Crew::IsBehind()) co_await Crew::Turn(whose);
  begins();
}

/// Calls, of which each is long to take, or none.
class CrewsCalls : public CrewTest, public ::testing::WithParamInterface<bool> {};

/// Of a hundred calls at once, and what goes on of others behind them.
TEST_P(CrewsCalls, ManyWaitInLineAndWhatHasBegunGoesFirst) {
  constexpr int kCalls = 100;
  std::vector<int> order;
  Works works;
  Crew crew(&queue_);
  const Ended ended{&queue_};
  std::promise<void> all;
  const auto begins = [&](int i) {
    order.push_back(i);
    if (order.size() == kCalls + 1) all.set_value();
  };
  for (int i = 0; i < kCalls; ++i)
    works.Post(&queue_, [&, i] { Call([&, i] { begins(i); }, nullptr, GetParam()); });
  works.Post(&queue_, [&] { begins(kCalls); });
  crew.Start(1);
  all.get_future().wait();
  const auto begun = std::find(order.begin(), order.end(), kCalls) - order.begin();
  EXPECT_GE(begun, 32) << "as many are served as they come";
  EXPECT_LT(begun, kCalls / 2) << "before those in line";
  order.erase(order.begin() + begun);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << "each in his turn";
}

INSTANTIATE_TEST_SUITE_P(QuickAndLong, CrewsCalls, ::testing::Bool());

/// Of sixty calls at once of three, all but the first of the first one wait in line.
TEST_F(CrewTest, OneOfEachCanGoFirst) {
  std::string order;
  Works works;
  Crew crew(&queue_);
  const Ended ended{&queue_};
  std::promise<void> all;
  const std::string callers = std::string(50, 'a') + "bbbbbccccc";
  for (const char& who : callers)
    works.Post(&queue_, [&] {
      Call(
          [&] {
            order.push_back(who);
            if (order.size() == callers.size()) all.set_value();
          },
          &callers[callers.find(who)]);
    });
  works.Post(&queue_, [] { Crew::OneOfEachFirst(); });
  crew.Start(1);
  all.get_future().wait();
  const size_t at = order.find('b');
  ASSERT_GE(at, 33U) << "as many are served as they come, and one of the first in line";
  EXPECT_EQ(order.substr(at), "bc" + std::string(49 - at + 1, 'a') + "bbbbcccc") << order;
}

TEST_F(CrewTest, WhoWaitsInLineIsTakenByAnyThreadAndNobodyIsForgotten) {
  constexpr int kCalls = 2000;
  std::atomic<int> begun{0};
  std::promise<void> all;
  Works works;
  Crew crew(&queue_);
  const Ended ended{&queue_};
  for (int i = 0; i < kCalls; ++i)
    works.Post(&queue_, [&] {
      Call([&] {
        if (++begun == kCalls) all.set_value();
      });
    });
  crew.Start(4);
  all.get_future().wait();
  EXPECT_EQ(begun, kCalls);
}

/// Else what has begun would go before it for as long as anything comes.
TEST_F(CrewTest, TheMoreWaitInLineTheMoreGoOn) {
  constexpr int kCalls = 3000;
  int begun = 0, in_the_end = 0;
  Works works;
  Crew crew(&queue_);
  const Ended ended{&queue_};
  std::promise<void> all;
  const auto begins = [&] {
    if (++begun == kCalls) all.set_value();
  };
  for (int i = 0; i < kCalls; ++i) works.Post(&queue_, [&] { Call(begins); });
  works.Post(&queue_, [&] { in_the_end = begun; });
  crew.Start(1);
  all.get_future().wait();
  EXPECT_GE(in_the_end, kCalls / 2);
}

TEST_F(CrewTest, NobodyWaitsOnOtherThreads) {
  EXPECT_FALSE(Crew::IsBehind());
  Crew::OneOfEachFirst();
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
