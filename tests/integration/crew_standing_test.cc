// Threads that stand, as those do that gRPC keeps: others go on in their place.
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "server/rpc/transport/queue_thread.h"
#include "tests/integration/crew_fixture.h"
#include "tests/unit/waiting.h"

namespace tilewire::rpc {
namespace {

using std::chrono::milliseconds;

class CrewStanding : public CrewTest {
 protected:
  /// Threads that do nothing else until the end of the test. Asks the crew to look after them, by a clock of
  /// its own.
  bool Stand(Crew* crew, int threads) {
    for (int i = 0; i < threads; ++i) {
      const auto stands = std::make_shared<std::promise<std::thread::id>>();
      auto standing = stands->get_future();
      works_.Post(&queue_, [stands, allowed = allowed_] {
        stands->set_value(std::this_thread::get_id());
        allowed.wait();
      });
      if (!IsReadySoon(crew, standing)) return false;
      EXPECT_TRUE(standing_.insert(standing.get()).second);
    }
    return true;
  }
  template <typename T>
  bool IsReadySoon(Crew* crew, const std::future<T>& done) {
    return testing::Eventually([&] {
      crew->LookAfter(now_ += milliseconds(50));
      return done.wait_for(milliseconds(1)) == std::future_status::ready;
    });
  }
  void GoOn() { go_on_.set_value(); }

  TimePoint now_{};
  std::promise<void> go_on_;
  const std::shared_future<void> allowed_ = go_on_.get_future().share();
  std::set<std::thread::id> standing_;
  Works works_;
};

/// None said that it was busy, and there are more than the crew had at first.
TEST_F(CrewStanding, AreReplaced) {
  std::promise<void> done;
  Crew crew(&queue_);
  const Ended ended{&queue_};
  crew.Start(2);
  EXPECT_TRUE(Stand(&crew, 5)) << "somebody goes on";
  Post(&queue_, [&] { done.set_value(); });
  EXPECT_TRUE(IsReadySoon(&crew, done.get_future()));
  GoOn();
  EXPECT_TRUE(testing::Eventually([&] { return crew.resting() >= 5; })) << "one is enough again";
  // Another one may still be about to rest.
  EXPECT_TRUE(testing::Eventually([&] {
    std::set<std::thread::id> threads;
    for (int i = 0; i < 200; ++i) threads.insert(ThreadOfNext());
    return threads.size() == 1;
  }));
}

/// Looked after by a clock that runs much too fast its threads are replaced again and again.
TEST(QueueThreadStanding, EventsNeverRunAtOnce) {
  grpc::ServerBuilder builder;
  QueueThread thread(builder.AddCompletionQueue());
  const auto server = builder.BuildAndStart();
  thread.Start();
  {
    const QueueThread::Stay stay(&thread);
    std::atomic<int> inside{0}, done{0};
    std::set<std::thread::id> threads;  // no mutex: nobody else is inside
    TimePoint now{};
    int posted = 0;
    EXPECT_TRUE(testing::Eventually([&] {
      for (int i = 0; i < 100; ++i, ++posted) {
        Post(thread.queue(), [&] {
          EXPECT_EQ(++inside, 1);
          threads.insert(std::this_thread::get_id());
          --inside;
          ++done;
        });
        for (int look = 0; look < 4; ++look) thread.LookAfter(now += milliseconds(50));
      }
      EXPECT_TRUE(testing::Eventually([&] { return done == posted; }));
      return posted >= 1000 && threads.size() > 1;
    }));
  }
  EXPECT_TRUE(testing::Eventually([&] { return thread.asleep(); }));
  server->Shutdown();
}

}  // namespace
}  // namespace tilewire::rpc
