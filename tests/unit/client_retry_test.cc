// Calls that succeed later: busy, draining and absent servers.
#include <absl/synchronization/mutex.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <thread>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/retry.h"
#include "tests/unit/client_fake_server.h"
#include "tests/unit/client_testing.h"
#include "tests/unit/waiting.h"

namespace tilewire::client {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeBehaviour;
using testing::FakeServer;
using ::testing::Ne;
using testing::Pair;
using tilewire::testing::Eventually;

/// Whether a thread of this process waits for something.
bool Sleeps(pid_t thread) {
  if (thread == 0) return false;
  const std::string stat = testing::ReadFile("/proc/self/task/" + std::to_string(thread) + "/stat");
  const size_t end = stat.rfind(") ");  // of its name
  return end != std::string::npos && stat.substr(end + 2, 1) == "S";
}

/// What waits of a client were, none of which takes any time.
struct Waits {
  ConnectOptions Options() {
    return {.wait = [this](std::chrono::milliseconds time, const std::stop_token&) { all.push_back(time); }};
  }
  std::vector<std::chrono::milliseconds> all;
};

// Else gRPC may take a connection for failed that is fine (channels.cc). Only the first queue of a process
// can tell, so this can fail only where the test runs alone, as CTest runs it.
TEST(ClientRetry, QueueingForAMutexLeavesErrnoAlone) {
  const Client client = Client::Connect("localhost:1");
  absl::Mutex mutex;
  bool over = false;
  std::array<int, 2> left_in_errno{};
  std::array<std::atomic<pid_t>, 2> ids{};
  std::vector<std::thread> queue;
  for (size_t i = 0; i < ids.size(); ++i)
    queue.emplace_back([&, i] {
      ids[i] = gettid();
      errno = 0;
      const absl::MutexLock lock(&mutex);
      mutex.Await(absl::Condition(&over));
      left_in_errno[i] = errno;
    });
  for (const auto& id : ids) EXPECT_TRUE(Eventually([&id] { return Sleeps(id); }));
  mutex.Lock();
  over = true;
  mutex.Unlock();
  for (auto& thread : queue) thread.join();
  EXPECT_THAT(left_in_errno, Each(Ne(ENOENT)));
}

/// Else a server that was started anew stays out of reach for 5 s, where calls fail at once and none waits.
TEST(ClientRetry, ConnectionsAreLookedAfterWhileNoCallWaits) {
  const Client client = Client::Connect("localhost:1");
  EXPECT_NE(std::getenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS"), nullptr);
}

TEST(ClientRetry, BusyIsRetriedAfterThePushback) {
  for (const CallForm form : {CallForm::kUnary, CallForm::kStream}) {
    FakeBehaviour behaviour;
    behaviour.busy = 2;
    behaviour.pushback_ms = 60;
    FakeServer server(behaviour);
    const Pair pair({10});
    Waits waits;
    const auto reply =
        Client::Connect(server.address(), waits.Options()).Rmse(pair.A(), pair.B(), {}, {.form = form});
    ASSERT_TRUE(reply) << reply.error().ToString();
    EXPECT_EQ(reply->reply.attempts, 3);
    EXPECT_THAT(waits.all, ElementsAre(60ms, 60ms));
  }
}

// As a server does that has no memory for what it opened.
TEST(ClientRetry, BusyIsRetriedThoughOperandBytesWereSent) {
  FakeBehaviour behaviour;
  behaviour.busy_later = 2;
  behaviour.pushback_ms = 60;
  FakeServer server(behaviour);
  const Pair pair({500'000});
  Waits waits;
  const auto reply = Client::Connect(server.address(), waits.Options())
                         .Rmse(pair.A(), pair.B(), {}, {.form = CallForm::kStream});
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_EQ(reply->reply.attempts, 3);
  EXPECT_THAT(waits.all, ElementsAre(60ms, 60ms));
}

TEST(ClientRetry, WithoutPushbackTheWaitDoublesUpToTwoSeconds) {
  FakeBehaviour behaviour;
  behaviour.busy = 8;
  FakeServer server(behaviour);
  const Pair pair({10});
  Waits waits;
  const auto reply =
      Client::Connect(server.address(), waits.Options()).Rmse(pair.A(), pair.B(), {}, {.max_attempts = 9});
  ASSERT_TRUE(reply) << reply.error().ToString();
  ASSERT_EQ(waits.all.size(), 8U);
  auto expected = 50ms;
  for (const auto wait : waits.all) {
    EXPECT_GE(wait, expected * 80 / 100);
    EXPECT_LE(wait, expected * 120 / 100);
    expected = std::min<std::chrono::milliseconds>(expected * 2, 2s);
  }
}

TEST(ClientRetry, TheThreadSleepsWhereNobodyElseWaits) {
  const auto start = std::chrono::steady_clock::now();
  Retry::Sleep(5ms, {}, {});
  EXPECT_GE(std::chrono::steady_clock::now() - start, 5ms);
  std::stop_source stop;
  stop.request_stop();
  Retry::Sleep(1h, stop.get_token(), {});  // over at once
}

TEST(ClientRetry, RetriesEndWithTheAttemptsAndBeforeTheDeadline) {
  FakeBehaviour behaviour;
  behaviour.busy = 1000;
  FakeServer server(behaviour);
  Waits waits;
  Client client = Client::Connect(server.address(), waits.Options());
  const Pair pair({10});
  const auto exhausted = client.Rmse(pair.A(), pair.B(), {}, {.max_attempts = 3});
  ASSERT_FALSE(exhausted);
  EXPECT_EQ(exhausted.error().reason(), "BUSY");
  EXPECT_EQ(server.log().calls, 3);

  behaviour.pushback_ms = 60'000;
  server.Behave(behaviour);
  const auto start = std::chrono::steady_clock::now();
  const auto hopeless = client.Rmse(pair.A(), pair.B(), {}, {.timeout = 10s});
  ASSERT_FALSE(hopeless);
  EXPECT_EQ(hopeless.error().code(), Code::kResourceExhausted);
  EXPECT_EQ(hopeless.error().detail()->retry_after_ms, 60'000);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
}

TEST(ClientRetry, StreamsThatTheTransportCutAreUnavailableAndRepeated) {
  FakeBehaviour behaviour;
  behaviour.cut = 2;
  FakeServer server(behaviour);
  Client client = Client::Connect(server.address());
  for (const size_t count : {10, 300'000}) {  // unary, streamed
    const Pair pair({static_cast<int64_t>(count)});
    server.Behave(behaviour);
    const auto reply = client.Rmse(pair.A(), pair.B());
    ASSERT_TRUE(reply) << reply.error().ToString();
    EXPECT_EQ(reply->reply.attempts, 3);
    behaviour.cut = 2;
    server.Behave(behaviour);
    const auto cut = client.Rmse(pair.A(), pair.B(), {}, {.max_attempts = 1});
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().code(), Code::kUnavailable);
    EXPECT_EQ(cut.error().reason(), "STREAM_CUT");
  }
}

TEST(ClientRetry, AServerThatComesLaterIsFound) {
  const testing::QuietPort port;
  const Pair pair({300'000});
  std::unique_ptr<FakeServer> server;
  int waits = 0;
  const auto wait = [&](std::chrono::milliseconds time, const std::stop_token& stop) {
    if (++waits == 3) server = std::make_unique<FakeServer>(FakeBehaviour{}, port.number());
    if (waits > 3) Retry::Sleep(time, stop, {});  // gRPC connects again when it thinks it is time to
  };
  Client client = Client::Connect("127.0.0.1:" + std::to_string(port.number()), {.wait = wait});
  const auto reply = client.Rmse(pair.A(), pair.B(), {}, {.timeout = 60s, .max_attempts = 100});
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_GT(reply->reply.attempts, 3);
}

TEST(ClientRetry, DrainingServersAreRetried) {
  FakeBehaviour behaviour;
  behaviour.unavailable = 1;
  FakeServer server(behaviour);
  const Pair pair({10});
  const auto reply = Client::Connect(server.address()).Rmse(pair.A(), pair.B());
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_EQ(reply->reply.attempts, 2);
}

TEST(ClientRetry, ARefusedUnaryReplyIsStreamed) {
  FakeBehaviour behaviour;
  behaviour.use_execute = true;
  FakeServer server(behaviour);
  Client client = Client::Connect(server.address());
  const Pair pair({10});
  const auto reply = client.Rmse(pair.A(), pair.B());
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_TRUE(reply->reply.streamed);
  const auto forced = client.Rmse(pair.A(), pair.B(), {}, {.form = CallForm::kUnary});
  ASSERT_FALSE(forced);
  EXPECT_EQ(forced.error().reason(), "USE_EXECUTE");
}

}  // namespace
}  // namespace tilewire::client
