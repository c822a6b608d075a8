// Jobs that several streams carry: the same bits, and no stream waits for another.
#include <algorithm>
#include <random>

#include "client/cpp/client.h"
#include "tests/integration/join.h"

namespace tilewire::testing {
namespace {

class Join : public OnBoth {
 protected:
  TestServer::Options options_;
};

/// Sends the blocks that fall to a stream in an order of its own, in messages of `step` bytes.
void SendShare(RawStream& raw, const std::vector<std::string>& operands, size_t stream, size_t streams,
               size_t step, uint64_t seed) {
  std::vector<std::pair<uint32_t, uint64_t>> blocks;
  for (uint32_t operand = 0; operand < operands.size(); ++operand)
    for (uint64_t block = 0; block < kBlocks; ++block)
      if ((block + operand) % streams == stream) blocks.emplace_back(operand, block);
  std::mt19937_64 random(seed);
  std::shuffle(blocks.begin(), blocks.end(), random);
  for (const auto& [operand, block] : blocks)
    raw.SendAll(operand, operands[operand], step, block * kBlock, (block + 1) * kBlock);
}

std::string RunStriped(TestServer& server, const v1::Open& open, const std::vector<std::string>& operands,
                       size_t count, size_t step, uint64_t seed) {
  return RunStreams(server, open, count, [&](RawStream& raw, size_t number) {
    SendShare(raw, operands, number, count, step, seed + number);
  });
}

TEST_P(Join, SameBitsForEveryNumberOfStreams) {
  TestServer server(device(), options_);
  const std::string a = Floats(kBytes / 4, 1), b = Floats(kBytes / 4, 2);
  const std::string rmse = HostRmse(a, b, DType::kF32, kShape, {1});
  const std::string transposed = HostTranspose(a, DType::kF32, kShape);
  for (const size_t count : {1, 2, 3, 8, 16})
    for (const size_t step : {1 << 10, 50'000, 4 << 20}) {
      SCOPED_TRACE(std::to_string(count) + " streams, messages of " + std::to_string(step));
      if (step == 1 << 10 && count > 3) continue;
      EXPECT_TRUE(RunStriped(server, RmseOpen(v1::DTYPE_F32, kShape, {1}), {a, b}, count, step, 7) == rmse);
      EXPECT_TRUE(RunStriped(server, TransposeOpen(v1::DTYPE_F32, kShape), {a}, count, step, 9) ==
                  transposed);
    }
  ExpectUnharmed(server);
}

TEST_P(Join, StreamsThatFillBlocksSlowlyDoNotWaitForEachOther) {
  options_.engine.pinned_bytes = 8 << 20;
  TestServer server(device(), options_);
  const std::string a = Floats(kBytes / 4, 3), b = Floats(kBytes / 4, 4);
  RawStream first(server.Connect());
  ASSERT_TRUE(first.Open(Striped(RmseOpen(v1::DTYPE_F32, kShape), 64)));
  std::vector<std::unique_ptr<JoinedStream>> joined;
  while (joined.size() + 1 < first.opened.max_streams()) {
    joined.push_back(std::make_unique<JoinedStream>(server.Connect()));
    ASSERT_TRUE(joined.back()->Join(first.opened.job()));
  }
  // Every stream leaves a block of each operand half full, then all go on.
  const std::vector<std::string> operands{a, b};
  std::vector<RawStream*> streams{&first};
  for (auto& stream : joined) streams.push_back(stream.get());
  for (const uint64_t half : {0, 1})
    for (size_t i = 0; i < streams.size(); ++i)
      for (uint32_t operand = 0; operand < 2; ++operand)
        ASSERT_TRUE(streams[i]->SendAll(operand, operands[operand], 1 << 20, i * kBlock + half * kBlock / 2,
                                        i * kBlock + (half + 1) * kBlock / 2));
  for (uint32_t operand = 0; operand < 2; ++operand)
    ASSERT_TRUE(first.SendAll(operand, operands[operand], 1 << 20, streams.size() * kBlock));
  for (auto& stream : joined) EXPECT_TRUE(stream->End().ok());
  EXPECT_TRUE(first.End().ok());
  EXPECT_TRUE(first.output == HostRmse(a, b, DType::kF32, kShape));
  ExpectUnharmed(server);
}

TEST_P(Join, TheClientSpreadsACallOverAsManyConnectionsAsItIsGranted) {
  options_.engine.max_streams = 8;
  TestServer server(device(), options_);
  const std::string a = Floats(kBytes / 4, 1), b = Floats(kBytes / 4, 2);
  const std::string rmse = HostRmse(a, b, DType::kF32, kShape, {1});
  const std::string pairs = HostRmse(a, b, DType::kF32, {350'000, 2}, {1});
  const std::string transposed = HostTranspose(a, DType::kF32, kShape);
  auto client = client::Client::Connect(server.address());
  uint32_t most_streams = 0;
  for (const uint32_t connections : {1, 2, 5, 8, 16})
    for (const bool concurrent : {false, true}) {
      SCOPED_TRACE(std::to_string(connections) + " connections");
      client::CallOptions options;
      options.form = client::CallForm::kStream;
      options.connections = connections;
      options.concurrent_sink = concurrent;
      options.message_bytes = 20'000;
      client::RmseOp op;
      op.axes = {1};
      const auto values = client.Rmse(Source(a), Source(b), op, options);
      ASSERT_TRUE(values) << values.error().ToString();
      EXPECT_EQ(std::memcmp(values->values.data(), rmse.data(), rmse.size()), 0);
      EXPECT_LE(values->reply.timing.streams, std::min(connections, 8u));
      // A result that comes in pieces, on all streams.
      const auto many = client.Rmse(Source(a, {350'000, 2}), Source(b, {350'000, 2}), op, options);
      ASSERT_TRUE(many) << many.error().ToString();
      EXPECT_EQ(std::memcmp(many->values.data(), pairs.data(), pairs.size()), 0);
      std::string out(kBytes, '\0');
      const client::Sink sink = [&out](uint64_t offset, std::span<const uint8_t> bytes) {
        std::memcpy(out.data() + offset, bytes.data(), bytes.size());
        return Status();
      };
      const auto reply = client.Transpose(Source(a), {}, sink, options);
      ASSERT_TRUE(reply) << reply.error().ToString();
      EXPECT_TRUE(out == transposed);
      most_streams = std::max(most_streams, reply->timing.streams);
    }
  EXPECT_GT(most_streams, 1u);  // not always: the first may be through before others have joined
  ExpectUnharmed(server);
}

TEST_P(Join, AnAddressThatCannotBeReachedFromHereIsNotTried) {
  options_.rpc.advertise = {"unix:/nowhere"};  // as another machine sees a server's socket
  TestServer server(device(), options_);
  const std::string a = Floats(kBytes / 4, 1);
  auto client = client::Client::Connect(server.address());
  client::CallOptions options;
  options.form = client::CallForm::kStream;
  options.connections = 4;
  options.message_bytes = 4096;
  const client::Sink ignore = [](uint64_t, std::span<const uint8_t>) { return Status(); };
  uint32_t most_streams = 0;
  for (int i = 0; i < 20 && most_streams < 2; ++i) {
    const auto reply = client.Transpose(Source(a), {}, ignore, options);
    ASSERT_TRUE(reply) << reply.error().ToString();
    most_streams = std::max(most_streams, reply->timing.streams);
  }
  EXPECT_GT(most_streams, 1u);
  ExpectUnharmed(server);
}

TEST_P(Join, ASinkThatFailsEndsAllStreams) {
  TestServer server(device(), options_);
  const std::string a = Floats(kBytes / 4, 1);
  auto client = client::Client::Connect(server.address());
  client::CallOptions options;
  options.connections = 4;
  options.form = client::CallForm::kStream;
  const client::Sink full = [](uint64_t offset, std::span<const uint8_t>) {
    return offset < kBytes / 2 ? Status() : Status(Code::kDataLoss, "BAD_FILE", "no space left");
  };
  const auto reply = client.Transpose(Source(a), {}, full, options);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().reason(), "BAD_FILE") << reply.error().ToString();
  ExpectUnharmed(server);
}

TILEWIRE_ON_BOTH(Join);

}  // namespace
}  // namespace tilewire::testing
