// Unary calls on resident arrays that are large, where kernels reach pinned memory: the threads that take the
// calls wait for their kernels, and go on taking calls meanwhile.
#include <atomic>

#include "client/cpp/client.h"
#include "tests/integration/helpers.h"

namespace tilewire::testing {
namespace {

using client::ArraySource;

constexpr int64_t kCount = 300'000;

class AwaitedCalls : public ::testing::Test {
 protected:
  static TestServer::Options Options(int queues) {
    TestServer::Options options;
    options.engine.lanes = 4;
    options.rpc.queues = queues;
    return options;
  }
  static std::unique_ptr<engine::Device> Reached(std::unique_ptr<engine::Device> device) {
    return engine::MakeStaged(std::move(device), true);
  }
  ArraySource Memory(const std::string& bytes) const {
    return ArraySource::FromMemory(MakeSpec(DType::kF32, std::array{kCount}).value(), bytes.data());
  }
  void Call(client::Client* client, const ArraySource& a, const ArraySource& b, int times) const {
    client::CallOptions options;
    options.form = client::CallForm::kUnary;
    for (int i = 0; i < times; ++i) {
      const auto reply = client->Rmse(a, b, {}, options);
      ASSERT_TRUE(reply) << reply.error().ToString();
      EXPECT_EQ(std::memcmp(reply->values.data(), right_.data(), sizeof(double)), 0);
      EXPECT_FALSE(reply->reply.timing.d2h_us.has_value());
    }
  }

  const std::string a_ = Floats(kCount, 1), b_ = Floats(kCount, 2);
  const std::string right_ = HostRmse(a_, b_, DType::kF32, {kCount}, {});
};

TEST_F(AwaitedCalls, AreAnsweredBesideUploadsAndSmallCalls) {
  for (const int queues : {1, 3}) {
    TestServer server(Reached(engine::OpenCpuDevice(2)), Options(queues));
    {
      auto client = client::Client::Connect(server.address());
      const auto a = client.Put(Memory(a_)), b = client.Put(Memory(b_));
      ASSERT_TRUE(a && b);
      std::vector<std::thread> callers;
      for (int t = 0; t < 4; ++t)
        callers.emplace_back([&] {
          auto own = client::Client::Connect(server.address());
          Call(&own, a->array.source(), b->array.source(), 30);
        });
      callers.emplace_back([&] {
        auto own = client::Client::Connect(server.address());
        for (int i = 0; i < 10; ++i) EXPECT_TRUE(own.Rmse(Memory(a_), b->array.source()));
      });
      callers.emplace_back([&] {
        auto own = client::Client::Connect(server.address());
        const auto small =
            ArraySource::FromMemory(MakeSpec(DType::kF32, std::array{int64_t{1000}}).value(), a_.data());
        for (int i = 0; i < 100; ++i) EXPECT_TRUE(own.Rmse(small, small));
      });
      for (auto& caller : callers) caller.join();
    }
    server.ExpectIdle();
  }
}

/// Kernels that take longer than anybody is awake for, on lanes that nobody can help.
TEST_F(AwaitedCalls, ThatTakeLongAreLeftToTheLanes) {
  const engine::SlowOptions slow{.launch = std::chrono::milliseconds(20)};
  TestServer server(Reached(engine::MakeSlow(engine::OpenCpuDevice(2), slow)), Options(1));
  {
    auto client = client::Client::Connect(server.address());
    const auto a = client.Put(Memory(a_)), b = client.Put(Memory(b_));
    ASSERT_TRUE(a && b);
    Call(&client, a->array.source(), b->array.source(), 5);
    // Given up by their callers meanwhile.
    client::CallOptions hasty;
    hasty.form = client::CallForm::kUnary;
    hasty.timeout = std::chrono::milliseconds(5);
    for (int i = 0; i < 5; ++i) {
      const auto late = client.Rmse(a->array.source(), b->array.source(), {}, hasty);
      if (late) continue;  // a machine that stalled may answer first
      EXPECT_EQ(late.error().code(), Code::kDeadlineExceeded);
    }
  }
  server.ExpectIdle();
}

/// A server that is told to stop while its threads wait awake. Nobody calls meanwhile: gRPC 1.51 sometimes
/// loses a call that arrives while its server shuts down, and with it the server's memory.
TEST_F(AwaitedCalls, EndWithTheServer) {
  const engine::SlowOptions slow{.launch = std::chrono::milliseconds(2)};
  for (int i = 0; i < 5; ++i) {
    auto server =
        std::make_unique<TestServer>(Reached(engine::MakeSlow(engine::OpenCpuDevice(2), slow)), Options(2));
    auto client = client::Client::Connect(server->address());
    auto a = client.Put(Memory(a_));
    ASSERT_TRUE(a);
    std::atomic<int> calls{0};
    std::atomic<unsigned> begun{0};
    std::atomic<bool> stop{false}, stopped{false};
    std::thread caller([&] {
      client::CallOptions options;
      options.form = client::CallForm::kUnary;
      options.max_attempts = 1;
      auto own = client::Client::Connect(server->address());
      bool answered = true;
      for (; answered; ++calls) {
        ++begun;
        if (stop) break;
        answered = own.Rmse(a->array.source(), a->array.source(), {}, options).has_value();
      }
      stopped = true;
    });
    EXPECT_TRUE(Eventually([&] { return calls >= 3 || stopped; }));
    stop = true;
    // The last call has come to its job, or is over.
    const auto admitted = [&] { return server->engine().stats().jobs_admitted - 1; };  // but for the Put
    EXPECT_TRUE(Eventually([&] { return stopped || admitted() >= begun; }));
    server->rpc().Shutdown(Clock::now());
    caller.join();
    EXPECT_GE(calls, 3);
    server.reset();
  }
}

}  // namespace
}  // namespace tilewire::testing
