// Threads of streams sleep while there are none.
#include "server/rpc/transport/queue_thread.h"

#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>

#include "server/rpc/transport/coroutine.h"
#include "tests/unit/waiting.h"

namespace tilewire::rpc {
namespace {

Detached Post(grpc::CompletionQueue* queue, std::function<void()> work) {
  co_await Onto(queue);
  work();
}

class QueueThreadTest : public ::testing::Test {
 protected:
  QueueThreadTest() : thread_(builder_.AddCompletionQueue()), server_(builder_.BuildAndStart()) {
    thread_.Start();
  }
  ~QueueThreadTest() override { server_->Shutdown(); }

  grpc::ServerBuilder builder_;
  QueueThread thread_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(QueueThreadTest, ServesWhileSomebodyIsThere) {
  for (int i = 0; i < 100; ++i) {
    const QueueThread::Stay stay(&thread_);
    std::promise<void> done;
    Post(thread_.queue(), [&] { done.set_value(); });
    done.get_future().wait();
  }
}

/// Whoever leaves last may be any thread: the one of the queue goes to sleep in either case.
TEST_F(QueueThreadTest, SleepsWhenTheLastHasLeft) {
  for (const bool from_outside : {true, false}) {
    std::promise<void> left;
    QueueThread::Stay stay(&thread_);
    Post(thread_.queue(), [&, from_outside] {
      if (!from_outside) stay = {};
      left.set_value();
    });
    left.get_future().wait();
    stay = {};
    EXPECT_TRUE(testing::Eventually([&] { return thread_.asleep(); }));
    std::atomic<bool> done{false};
    Post(thread_.queue(), [&] { done = true; });
    EXPECT_FALSE(done);
    QueueThread::Stay again(&thread_);
    EXPECT_TRUE(testing::Eventually([&] { return done.load(); }));
  }
}

}  // namespace
}  // namespace tilewire::rpc
