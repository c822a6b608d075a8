// Operations that are begun before they are awaited, and the account of what they may bind; without a server.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <thread>

#include "server/rpc/transport/coroutine.h"

namespace tilewire::rpc {
namespace {

/// Awaits it once; `ok` is set when that is over.
Detached Await(Ahead* ahead, std::optional<bool>* ok) {
  *ok = co_await *ahead;
}

/// Takes results, beginning anew after each, until one is false.
Detached TakeAll(Ahead* ahead, Event** event, int* taken) {
  const auto begin = [=] { ahead->Begin([=](void* tag) { *event = static_cast<Event*>(tag); }); };
  begin();
  while (co_await *ahead) {
    ++*taken;
    begin();
  }
}
/// Begins, awaits and counts; the event comes from whoever empties the mailbox.
Detached TakeOne(Ahead* ahead, std::atomic<Event*>* mailbox, bool expected, std::atomic<int>* taken) {
  ahead->Begin([=](void* tag) { *mailbox = static_cast<Event*>(tag); });
  const bool ok = co_await *ahead;
  EXPECT_EQ(ok, expected);
  ++*taken;
}

class AheadTest : public ::testing::Test {
 protected:
  void Begin() {
    ahead_.Begin([this](void* tag) { event_ = static_cast<Event*>(tag); });
  }
  Ahead ahead_;
  Event* event_ = nullptr;
  std::optional<bool> ok_;
};

TEST_F(AheadTest, NothingIsPendingAtFirst) {
  EXPECT_FALSE(ahead_.pending());
}

TEST_F(AheadTest, EndsBeforeItIsAwaited) {
  for (const bool ok : {true, false}) {
    Begin();
    EXPECT_TRUE(ahead_.pending());
    event_->Complete(ok);
    EXPECT_TRUE(ahead_.pending()) << "nobody has taken what came";
    Await(&ahead_, &ok_);
    EXPECT_EQ(ok_, ok);
    EXPECT_FALSE(ahead_.pending());
  }
}

TEST_F(AheadTest, EndsWhileItIsAwaited) {
  for (const bool ok : {true, false}) {
    ok_.reset();
    Begin();
    Await(&ahead_, &ok_);
    EXPECT_FALSE(ok_.has_value());
    EXPECT_TRUE(ahead_.pending());
    event_->Complete(ok);
    EXPECT_EQ(ok_, ok);
    EXPECT_FALSE(ahead_.pending());
  }
}

TEST_F(AheadTest, IsBegunAnewByWhoTookItsResult) {
  int taken = 0;
  TakeAll(&ahead_, &event_, &taken);
  for (int i = 1; i <= 5; ++i) {
    event_->Complete(true);
    EXPECT_EQ(taken, i);
  }
  event_->Complete(false);
  EXPECT_EQ(taken, 5);
  EXPECT_FALSE(ahead_.pending());
}

TEST_F(AheadTest, EventsOfAnotherThreadMeetTheAwaitAtAnyMoment) {
  constexpr int kTurns = 20'000;
  std::atomic<Event*> mailbox{nullptr};
  std::atomic<int> taken{0};
  std::thread other([&] {
    for (int i = 0; i < kTurns; ++i) {
      Event* event;
      while ((event = mailbox.exchange(nullptr)) == nullptr) std::this_thread::yield();
      event->Complete(i % 3 != 0);
      while (taken.load() <= i) std::this_thread::yield();
    }
  });
  for (int i = 0; i < kTurns; ++i) {
    TakeOne(&ahead_, &mailbox, i % 3 != 0, &taken);
    while (taken.load() <= i) std::this_thread::yield();
  }
  other.join();
  EXPECT_FALSE(ahead_.pending());
}

/// Whether a coroutine of that promise may await that.
template <typename Promise, typename Awaitable>
concept MayAwait = requires(Awaitable& awaitable, std::coroutine_handle<Promise> coroutine) {
  awaitable.await_suspend(coroutine);
};
using Stays = QueueTask<int>::promise_type;
using Roams = Task<int>::promise_type;
using ByQueue = decltype(OnQueue<int>(nullptr, std::function<void(std::function<void(int)>)>()));
using ByAnyThread = decltype(OnAnyThread<int>(std::function<void(std::function<void(int)>)>()));
using ByOperation = Operation<std::function<void(void*)>>;
static_assert(MayAwait<Stays, ByQueue> && MayAwait<Stays, ByOperation> && MayAwait<Stays, Ahead>);
static_assert(MayAwait<Stays, QueueTask<int>>);
static_assert(!MayAwait<Stays, ByAnyThread> && !MayAwait<Stays, Task<int>>);
static_assert(MayAwait<Roams, ByQueue> && MayAwait<Roams, ByAnyThread> && MayAwait<Roams, Task<int>>);

using Resume = std::function<void(int)>;
using Thread = std::promise<std::thread::id>;

Detached ResumeOnQueue(grpc::CompletionQueue* queue, Resume* resume, Thread* thread) {
  EXPECT_EQ(co_await OnQueue<int>(queue, [=](auto call) { *resume = call; }), 1);
  thread->set_value(std::this_thread::get_id());
}
Detached ResumeOnAnyThread(Resume* resume, Thread* thread) {
  EXPECT_EQ(co_await OnAnyThread<int>([=](auto call) { *resume = call; }), 1);
  thread->set_value(std::this_thread::get_id());
}

TEST(Resumes, WhereTheAwaitSays) {
  grpc::CompletionQueue queue;
  std::thread server([&queue] { ServeQueue(&queue); });
  Resume resume_on_queue, resume_here;
  Thread on_queue, here;
  ResumeOnQueue(&queue, &resume_on_queue, &on_queue);
  ResumeOnAnyThread(&resume_here, &here);
  resume_on_queue(1);
  resume_here(1);
  EXPECT_EQ(on_queue.get_future().get(), server.get_id());
  EXPECT_EQ(here.get_future().get(), std::this_thread::get_id());
  queue.Shutdown();
  server.join();
}

Detached GoOnto(grpc::CompletionQueue* queue, int* arrived) {
  co_await Onto(queue);
  ++*arrived;
}
Detached TakeByQueue(grpc::CompletionQueue* queue, Resume* resume, int* arrived) {
  *arrived += co_await OnQueue<int>(queue, [=](auto call) { *resume = call; });
}

/// Queues that nobody serves but the test. What comes to one must be there at once: an alarm may be late by
/// up to a millisecond.
class OnAQueue : public ::testing::Test {
 protected:
  static constexpr int kRounds = 20;
  /// Completes the one event; whether it was there without waiting.
  bool CompleteOne() {
    void* tag = nullptr;
    bool ok = false;
    const auto at_once = queue_.AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_REALTIME));
    if (at_once == grpc::CompletionQueue::TIMEOUT) queue_.Next(&tag, &ok);
    static_cast<Event*>(tag)->Complete(ok);
    return at_once == grpc::CompletionQueue::GOT_EVENT;
  }
  ~OnAQueue() override {
    queue_.Shutdown();
    ServeQueue(&queue_);
  }

  int arrived_ = 0;
  Resume resume_;
  grpc::CompletionQueue queue_;
};

TEST_F(OnAQueue, WhoGoesThereIsThereAtOnce) {
  for (int i = 1; i <= kRounds; ++i) {
    GoOnto(&queue_, &arrived_);
    EXPECT_TRUE(CompleteOne());
    EXPECT_EQ(arrived_, i);
  }
}

TEST_F(OnAQueue, WhatIsAwaitedIsThereAtOnce) {
  for (int i = 1; i <= kRounds; ++i) {
    TakeByQueue(&queue_, &resume_, &arrived_);
    resume_(1);
    EXPECT_TRUE(CompleteOne());
    EXPECT_EQ(arrived_, i);
  }
}

}  // namespace
}  // namespace tilewire::rpc
