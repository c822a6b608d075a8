// Arrays larger than the device's memory, over real sockets: the same bits, bounded memory, clear refusals.
#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "client/cpp/client.h"
#include "tests/integration/join.h"
#include "tests/integration/own_time.h"

namespace tilewire::testing {
namespace {

constexpr int64_t kBudget = 32 * kMiB;
constexpr auto kPrecondition = grpc::StatusCode::FAILED_PRECONDITION;
const std::vector<int64_t> kBeyondBudget{2500, 5000};  // f32: 50 MB, more than the budget
constexpr size_t kWindowedElements = 2500 * 5000, kLargeBytes = 4 * kWindowedElements;

class Window : public OnBoth {
 protected:
  Window() {
    options_.engine.device_bytes = kBudget;
    options_.engine.block_bytes = kMiB;
    options_.rpc.receive.quota = 256 * kMiB;  // what gRPC does beyond it is tested elsewhere
  }
  TestServer::Options options_;
};

client::ArraySource BeyondBudget(const std::string& bytes) {
  return client::ArraySource::FromMemory(MakeSpec(DType::kF32, kBeyondBudget).value(), bytes.data());
}

TEST_P(Window, TheClientGetsTheSameBitsOverAnyNumberOfConnections) {
  TestServer server(device(), options_);
  const std::string a = Floats(kWindowedElements, 1), b = Floats(kWindowedElements, 2);
  auto client = client::Client::Connect(server.address());
  uint64_t most_in_use = 0;
  client::CallOptions options;
  options.progress = [&](const client::Progress&) {
    most_in_use = std::max(most_in_use, server.engine().stats().device_bytes_in_use);
  };
  for (const uint32_t connections : {1, 4}) {
    options.connections = connections;
    options.message_bytes = connections == 1 ? 4 << 20 : 300'000;  // more than a block, and less
    client::RmseOp op;
    if (connections > 1) op.axes = {1};
    const auto rmse = client.Rmse(BeyondBudget(a), BeyondBudget(b), op, options);
    ASSERT_TRUE(rmse) << rmse.error().ToString();
    const std::string expected = HostRmse(a, b, DType::kF32, kBeyondBudget, {op.axes.begin(), op.axes.end()});
    ASSERT_EQ(rmse->values.size() * 8, expected.size());
    EXPECT_EQ(std::memcmp(rmse->values.data(), expected.data(), expected.size()), 0);
    EXPECT_EQ(rmse->reply.timing.bytes_in, 2 * kLargeBytes);

    std::string out(kLargeBytes, '\0');
    const client::Sink sink = [&out](uint64_t offset, std::span<const uint8_t> bytes) {
      std::memcpy(out.data() + offset, bytes.data(), bytes.size());
      return Status();
    };
    const auto pdf = client.GaussianPdf(BeyondBudget(a), {.mean = 0.5, .stddev = 0.25}, sink, options);
    ASSERT_TRUE(pdf) << pdf.error().ToString();
    EXPECT_TRUE(out == HostGaussian(a, DType::kF32, kBeyondBudget, 0.5, 0.25));
    EXPECT_EQ(pdf->timing.bytes_out, kLargeBytes);
  }
  EXPECT_GT(most_in_use, 0u);
  EXPECT_LE(most_in_use, static_cast<uint64_t>(kBudget));
  ExpectUnharmed(server);
}

// Ascending from 0, without looking at Opened, in messages larger than the window.
TEST_P(Window, ASimpleClientOfOneOperandOnlyHasToRead) {
  TestServer server(device(), options_);
  const std::string a = Floats(kWindowedElements, 3);
  RawStream raw(server.Connect());
  ASSERT_TRUE(raw.Open(GaussianOpen(v1::DTYPE_F32, kBeyondBudget, 0, 1)));
  EXPECT_GT(raw.opened.window_bytes(), 0u);
  EXPECT_EQ(raw.opened.window_bytes() % raw.opened.block_bytes(), 0u);
  std::thread sender([&] {
    EXPECT_TRUE(raw.SendAll(0, a, 4 * kMiB));
    raw.stream->WritesDone();
  });
  const auto status = raw.Drain();
  sender.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(raw.output == HostGaussian(a, DType::kF32, kBeyondBudget, 0, 1));
  ExpectUnharmed(server);
}

TEST_P(Window, OperandsAlternateOrAreRefused) {
  TestServer server(device(), options_);
  const std::string a = Floats(kWindowedElements, 4), b = Floats(kWindowedElements, 5);
  for (const bool alternate : {true, false}) {
    RawStream raw(server.Connect());
    ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, kBeyondBudget)));
    const uint64_t window = raw.opened.window_bytes();
    ASSERT_GT(window, 0u);
    const uint64_t turn = alternate ? window : kLargeBytes;
    for (uint64_t at = 0; at < kLargeBytes; at += turn)
      for (const auto& [operand, bytes] : {std::pair(0u, &a), std::pair(1u, &b)})
        if (!raw.SendAll(operand, *bytes, kMiB, at, at + turn)) at = kLargeBytes;
    const auto status = raw.End();
    if (alternate) {
      EXPECT_TRUE(status.ok()) << status.error_message();
      EXPECT_TRUE(raw.output == HostRmse(a, b, DType::kF32, kBeyondBudget));
    } else {
      ExpectError(status, kPrecondition, "OUT_OF_WINDOW", "chunk.offset", "*",
                  "at most " + std::to_string(window) + " before those");
    }
    server.ExpectIdle();
  }
  ExpectUnharmed(server);
}

/// A job on as many streams as it is granted, 4 at most.
struct Streams {
  Streams(TestServer& server, const v1::Open& open) {
    all.push_back(std::make_unique<JoinedStream>(server.Connect()));
    EXPECT_TRUE(all[0]->Open(Striped(open, 4)));
    for (uint32_t i = 1; i < all[0]->opened.max_streams(); ++i) {
      all.push_back(std::make_unique<JoinedStream>(server.Connect()));
      EXPECT_TRUE(all[i]->Join(all[0]->opened.job()));
    }
  }
  std::vector<std::unique_ptr<JoinedStream>> all;
};

TEST_P(Window, StreamsThatRunAheadWaitForSlowOnes) {
  options_.engine.block_bytes = 256 << 10;
  TestServer server(device(), options_);
  const std::string a = Floats(kWindowedElements, 6);
  Streams streams(server, GaussianOpen(v1::DTYPE_F32, kBeyondBudget, 1, 2));
  ASSERT_EQ(streams.all.size(), 4u);
  const uint64_t block = streams.all[0]->opened.block_bytes();
  std::map<uint64_t, std::string> pieces;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (size_t number = 0; number < 4; ++number)
    threads.emplace_back([&, number] {
      RawStream& raw = *streams.all[number];
      std::thread reader([&] {
        const auto status = DrainPieces(raw, &pieces, &mutex);
        EXPECT_TRUE(status.ok()) << number << ": " << status.error_message();
      });
      std::mt19937_64 random(number);
      for (uint64_t at = number * block; at < kLargeBytes; at += 4 * block) {
        if (random() % 8 == 0)
          for (uint64_t n = random() % 50; n > 0; --n) std::this_thread::yield();
        EXPECT_TRUE(raw.SendAll(0, a, 100'000, at, at + block));
      }
      raw.stream->WritesDone();
      reader.join();
    });
  for (auto& thread : threads) thread.join();
  std::string output;
  for (const auto& [offset, bytes] : pieces) {
    EXPECT_EQ(offset, output.size());
    output += bytes;
  }
  EXPECT_TRUE(output == HostGaussian(a, DType::kF32, kBeyondBudget, 1, 2));
  ExpectUnharmed(server);
}

TEST_P(Window, WhenNoStreamIsLeftWithinItAllAreRefused) {
  options_.engine.block_bytes = 256 << 10;
  TestServer server(device(), options_);
  const std::string a = Floats(kWindowedElements, 7);
  Streams streams(server, RmseOpen(v1::DTYPE_F32, kBeyondBudget));
  ASSERT_GT(streams.all.size(), 1u);
  const uint64_t block = streams.all[0]->opened.block_bytes();
  for (size_t i = 0; i + 1 < streams.all.size(); ++i)
    streams.all[i]->SendAll(0, a, kMiB, (80 + 4 * i) * block, (84 + 4 * i) * block);
  EXPECT_TRUE(server.InFlight(1));  // the last one might yet bring what is missing
  streams.all.back()->SendAll(1, a, kMiB, 60 * block, 61 * block);
  for (auto& stream : streams.all)
    ExpectError(stream->Drain(), kPrecondition, "OUT_OF_WINDOW", "chunk.offset");
  ExpectUnharmed(server);
}

TEST_P(Window, AClientThatDoesNotReadIsGivenUp) {
  OwnTimeOfServer time;
  options_.engine.time = &time.source();
  options_.rpc.idle_seconds = OwnTimeOfServer::kIdle.count();
  TestServer server(device(), options_);
  const std::string a = Floats(kWindowedElements, 8);
  RawStream raw(server.Connect(), OwnTimeOfServer::kDeadline);
  ASSERT_TRUE(raw.Open(GaussianOpen(v1::DTYPE_F32, kBeyondBudget, 0, 1)));
  auto sent = std::async(std::launch::async, [&] { return raw.SendAll(0, a, kMiB); });
  ASSERT_TRUE(HasArrived(server, raw, 1));
  time.PassUntil(server, [&] { return sent.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  EXPECT_FALSE(sent.get());
  EXPECT_EQ(raw.Drain().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ExpectUnharmed(server);
}

TEST_P(Window, CancelledHalfWayItLeavesNothing) {
  TestServer server(device(), options_);
  const std::string a = Floats(kWindowedElements, 9);
  for (const bool gaussian : {true, false}) {
    RawStream raw(server.Connect());
    ASSERT_TRUE(raw.Open(gaussian ? GaussianOpen(v1::DTYPE_F32, kBeyondBudget, 0, 1)
                                  : RmseOpen(v1::DTYPE_F32, kBeyondBudget)));
    ASSERT_TRUE(raw.SendAll(0, a, kMiB, 0, 3 * kMiB));
    raw.context.TryCancel();
    EXPECT_EQ(raw.Drain().error_code(), grpc::StatusCode::CANCELLED);
    server.ExpectIdle();
  }
  ExpectUnharmed(server);
}

TEST_P(Window, WhatCannotBeComputedPartByPartIsALimit) {
  TestServer server(device(), options_);
  const auto refused = [&](const v1::Open& open, const char* why) {
    RawStream raw(server.Connect());
    EXPECT_FALSE(raw.Open(open));
    const auto status = raw.End();
    ExpectError(status, grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT", "device bytes of the request");
    EXPECT_NE(status.error_message().find(why), std::string::npos) << status.error_message();
  };
  refused(TransposeOpen(v1::DTYPE_F32, kBeyondBudget), "a transpose needs all of its input at once");
  refused(RmseOpen(v1::DTYPE_F32, {50'000, 500}, {0}), "the reduced axes must be the last ones");
  ExpectUnharmed(server);
}

TILEWIRE_ON_BOTH(Window);

}  // namespace
}  // namespace tilewire::testing
