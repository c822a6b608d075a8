// What tests of the crew share.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <future>
#include <thread>
#include <utility>

#include "server/rpc/transport/coroutine.h"
#include "server/rpc/transport/crew.h"

namespace tilewire::rpc {

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

inline Detached Post(grpc::CompletionQueue* queue, std::function<void()> work) {
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

}  // namespace tilewire::rpc
