// Calls that go well: unary and streamed forms, interleaving, Fortran order.
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/client.h"
#include "tests/unit/client_fake_server.h"
#include "tests/unit/client_testing.h"

namespace tilewire::client {
namespace {

using namespace std::chrono_literals;
using testing::FakeBehaviour;
using testing::FakeServer;
using ::testing::IsEmpty;
using testing::Pair;
using testing::Pattern;
using testing::Spec;

/// Collects a result and checks that it comes in order.
struct Collector {
  std::string bytes;
  int calls = 0;
  Sink sink() {
    return [this](uint64_t offset, std::span<const uint8_t> piece) {
      EXPECT_EQ(offset, bytes.size());
      bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      ++calls;
      return Status();
    };
  }
};

std::string Transposed2d(const std::string& in, size_t rows, size_t columns, size_t size) {
  std::string out(in.size(), '\0');
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      std::memcpy(&out[(j * rows + i) * size], &in[(i * columns + j) * size], size);
  return out;
}

TEST(Client, SmallRmseIsOneUnaryCall) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const Pair pair({100, 10});
  const auto reply = client.Rmse(pair.A(), pair.B(), {}, {.request_id = "abc"});
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_EQ(reply->values, std::vector<double>{std::sqrt(pair.SumSquares() / 1000)});
  EXPECT_EQ(reply->reply.spec, Spec(DType::kF64, {}));
  EXPECT_EQ(reply->reply.numeric_version, "rmse.1");
  EXPECT_FALSE(reply->reply.streamed);
  EXPECT_EQ(reply->reply.attempts, 1);
  EXPECT_EQ(reply->reply.timing.kernel_us, 20);
  EXPECT_EQ(reply->reply.timing.h2d_us, std::nullopt);
  EXPECT_EQ(reply->reply.timing.bytes_in, 8000u);
  EXPECT_GT(reply->reply.client_wall_us, 0);
  EXPECT_EQ(server.log().calls, 1);
  EXPECT_EQ(server.log().streams, 0);
  EXPECT_EQ(server.log().request_id, "abc");
}

TEST(Client, MetadataThatHeadersCannotHaveIsRefusedBeforeTheCall) {
  const FakeServer server;
  const Pair pair({3, 4});
  const auto code = [&](const ConnectOptions& connect, const CallOptions& options) {
    Client client = Client::Connect(server.address(), connect);
    const auto sent = client.Rmse(pair.A(), pair.B(), {}, options);
    EXPECT_EQ(client.List(options).has_value(), sent.has_value());
    EXPECT_EQ(client.Ping(options).has_value(), sent.has_value());
    return sent ? Code::kOk : sent.error().code();
  };
  EXPECT_EQ(code({.metadata = {{"x-user", "Ann Example"}}}, {.request_id = std::string(128, 'a')}),
            Code::kOk);
  for (const char* key : {"X-User", "x user", "", "grpc-timeout", ":path"})
    EXPECT_EQ(code({.metadata = {{key, "a"}}}, {}), Code::kInvalidArgument) << key;
  EXPECT_EQ(code({.metadata = {{"x-user", "a\nb"}}}, {}), Code::kInvalidArgument);
  EXPECT_EQ(code({}, {.request_id = "a\x7f"}), Code::kInvalidArgument);
  EXPECT_EQ(code({}, {.request_id = std::string(129, 'a')}), Code::kInvalidArgument);
  EXPECT_EQ(server.log().calls, 2);
}

TEST(Client, BothFormsGiveTheSameBitsForEveryOutputAndAxis) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const Pair pair({4, 50, 60});
  for (const auto& axes : std::vector<std::vector<int32_t>>{{}, {0}, {-1}, {0, 2}, {2, 1, 0}}) {
    for (const RmseOutput output : {RmseOutput::kRmse, RmseOutput::kMse, RmseOutput::kSumSquares}) {
      const auto unary = client.Rmse(pair.A(), pair.B(), {axes, output}, {.form = CallForm::kUnary});
      const auto stream = client.Rmse(pair.A(), pair.B(), {axes, output}, {.form = CallForm::kStream});
      ASSERT_TRUE(unary && stream) << unary.error().ToString();
      EXPECT_TRUE(stream->reply.streamed);
      EXPECT_EQ(unary->values, stream->values);
      EXPECT_EQ(unary->reply.spec, stream->reply.spec);
      if (axes.empty() && output == RmseOutput::kSumSquares) {
        EXPECT_EQ(unary->values[0], pair.SumSquares());
      }
    }
  }
  EXPECT_THAT(server.log().mistakes, IsEmpty());
}

TEST(Client, LargeOperandsInterleaveBlockByBlock) {
  FakeBehaviour behaviour;
  behaviour.block_bytes = 256 << 10;
  FakeServer server(behaviour);
  Client client = Client::Connect(server.address());
  const Pair pair({300'000});  // 1.2 MB each: 4 blocks and a rest
  std::vector<Progress> progress;
  const auto reply = client.Rmse(
      pair.A(), pair.B(), {},
      {.progress = [&](const Progress& p) { progress.push_back(p); }, .message_bytes = 100 << 10});
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_TRUE(reply->reply.streamed);
  EXPECT_EQ(reply->values[0], std::sqrt(pair.SumSquares() / 300'000));
  const auto log = server.log();
  EXPECT_THAT(log.mistakes, IsEmpty());
  // In order of arrival the block numbers rise, A before B in each.
  uint64_t last = 0;
  for (const auto& chunk : log.chunks) {
    EXPECT_LE(chunk.bytes, 100u << 10);
    const uint64_t turn = chunk.offset / behaviour.block_bytes * 2 + chunk.operand;
    EXPECT_GE(turn, last);
    last = turn;
  }
  EXPECT_EQ(last, 9u);
  ASSERT_FALSE(progress.empty());
  EXPECT_EQ(progress.back().sent, 2'400'000u);
  EXPECT_EQ(progress.back().send_total, 2'400'000u);
  EXPECT_EQ(progress.back().received, 8u);
}

TEST(Client, LargeResultsArriveWholeAndInOrder) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const ArraySpec spec = Spec(DType::kU16, {2111, 3001});
  const std::string in = Pattern(static_cast<size_t>(spec.bytes()));
  Collector collector;
  const auto reply = client.Transpose(ArraySource::FromMemory(spec, in.data()), {}, collector.sink());
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_EQ(reply->spec, Spec(DType::kU16, {3001, 2111}));
  EXPECT_EQ(reply->numeric_version, "transpose.1");
  EXPECT_GT(collector.calls, 100);
  EXPECT_EQ(collector.bytes, Transposed2d(in, 2111, 3001, 2));
  EXPECT_THAT(server.log().mistakes, IsEmpty());
}

TEST(Client, MessagesKeepToTheServersLimit) {
  FakeBehaviour behaviour;
  behaviour.max_message_bytes = 200 << 10;
  behaviour.block_bytes = 4 << 10;
  behaviour.window_bytes = 40 << 10;
  FakeServer server(behaviour);
  const Pair pair({400'000});
  const auto reply = Client::Connect(server.address()).Rmse(pair.A(), pair.B());
  ASSERT_TRUE(reply) << reply.error().ToString();
  uint64_t sent[2] = {};
  for (const auto& chunk : server.log().chunks) {
    sent[chunk.operand] += chunk.bytes;
    EXPECT_LE(std::max(sent[0], sent[1]) - std::min(sent[0], sent[1]), behaviour.window_bytes);
  }
  EXPECT_THAT(server.log().mistakes, IsEmpty());
}

TEST(Client, FortranFilesGiveTheBitsOfCOrder) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const testing::TempDir dir;
  const Pair pair({300, 500});
  const auto write = [&](const std::string& name, const std::vector<float>& values) {
    const std::string c(reinterpret_cast<const char*>(values.data()), values.size() * 4);
    testing::WriteFile(dir.File(name),
                       testing::NpyBytes("{'descr': '<f4', 'fortran_order': True, 'shape': (300, 500), }",
                                         Transposed2d(c, 300, 500, 4)));
    return ArraySource::OpenNpy(dir.File(name)).value();
  };
  const ArraySource fa = write("a.npy", pair.a), fb = write("b.npy", pair.b);
  ASSERT_TRUE(fa.fortran_order());
  for (const CallForm form : {CallForm::kUnary, CallForm::kStream}) {
    const auto expected = client.Rmse(pair.A(), pair.B(), {{1}}, {.form = form});
    const auto turned = client.Rmse(fa, fb, {{1}}, {.form = form});
    const auto mixed = client.Rmse(fa, pair.B(), {{1}}, {.form = form});
    ASSERT_TRUE(expected && turned && mixed);
    EXPECT_EQ(expected->values, turned->values);
    EXPECT_EQ(expected->values, mixed->values);
    for (const auto& axes : std::vector<std::vector<int32_t>>{{}, {0, 1}, {-1, 0}, {1, 0}}) {
      Collector c_order, f_order;
      ASSERT_TRUE(client.Transpose(pair.A(), {axes}, c_order.sink(), {.form = form}));
      const auto reply = client.Transpose(fa, {axes}, f_order.sink(), {.form = form});
      ASSERT_TRUE(reply);
      EXPECT_EQ(reply->spec.shape.dim(0), axes.size() == 2 && axes[0] == 0 ? 300 : 500);
      EXPECT_EQ(c_order.bytes, f_order.bytes);
    }
  }
  EXPECT_THAT(server.log().mistakes, IsEmpty());
}

TEST(Client, ManyThreadsShareOne) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const Pair pair({300'000});
  const double expected = std::sqrt(pair.SumSquares() / 300'000);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        const auto reply =
            client.Rmse(pair.A(), pair.B(), {}, {.form = t % 2 ? CallForm::kUnary : CallForm::kStream});
        right += reply && reply->values[0] == expected;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 30);
}

TEST(Client, DescribesAndPings) {
  FakeServer server;
  Client client = Client::Connect(server.address());
  const auto info = client.Describe();
  ASSERT_TRUE(info) << info.error().ToString();
  EXPECT_EQ(info->instance, "fake");
  ASSERT_EQ(info->devices.size(), 1u);
  EXPECT_EQ(info->devices[0].name, "Fake CPU");
  EXPECT_EQ(info->block_bytes, 64u << 10);
  EXPECT_EQ(info->numeric_versions, (std::vector<std::string>{"rmse.1", "transpose.1", "gaussian.1"}));
  const auto ping = client.Ping();
  ASSERT_TRUE(ping) << ping.error().ToString();
  EXPECT_GT(ping->count(), 0);

  FakeBehaviour sick;
  sick.serving = false;
  FakeServer other(sick);
  const auto refused = Client::Connect(other.address()).Ping();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "NOT_SERVING");
}

}  // namespace
}  // namespace tilewire::client
