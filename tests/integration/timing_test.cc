// What a reply tells about its call: every span with its place and bytes, and how often the CPU copied a
// byte.
#include <map>
#include <set>
#include <tuple>

#include "tests/integration/join.h"

namespace tilewire::testing {
namespace {

class Timing : public OnBoth {
 protected:
  TestServer::Options options_;
};
TILEWIRE_ON_BOTH(Timing);

/// Runs a streamed call on one connection.
v1::Timing Stream(const TestServer& server, v1::Open open, const std::vector<std::string>& operands,
                  size_t step = 1 << 20) {
  open.mutable_options()->set_trace(true);
  RawStream raw(server.Connect());
  EXPECT_TRUE(raw.Open(open));
  for (uint32_t i = 0; i < operands.size(); ++i) EXPECT_TRUE(raw.SendAll(i, operands[i], step));
  const auto status = raw.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return raw.result.timing();
}

TEST_P(Timing, AStreamedOperandIsCopiedOnceAndALargeResultNever) {
  TestServer server(device(), options_);
  const std::string data = Floats(kBytes / 4, 1);
  const auto timing = Stream(server, GaussianOpen(v1::DTYPE_F32, kShape, 0, 1), {data});
  EXPECT_EQ(timing.bytes_in(), kBytes);
  EXPECT_EQ(timing.bytes_out(), kBytes);
  EXPECT_EQ(timing.bytes_copied(), kBytes);
  EXPECT_EQ(Stream(server, TransposeOpen(v1::DTYPE_F32, kShape), {data}, 4097).bytes_copied(), kBytes);
  EXPECT_EQ(server.engine().stats().bytes_copied_by_cpu, 2 * kBytes);
  ExpectUnharmed(server);
}

TEST_P(Timing, ShortChunksOfOutputAreCopiedBecauseThatIsCheaper) {
  TestServer server(device(), options_);
  // Two whole blocks and a short one of 4 KiB, which goes into its message by memcpy.
  const uint64_t bytes = 2 * kBlock + 4096;
  const std::string data = Floats(bytes / 4, 1);
  const std::vector<int64_t> shape{static_cast<int64_t>(bytes / 4)};
  EXPECT_EQ(Stream(server, GaussianOpen(v1::DTYPE_F32, shape, 0, 1), {data}).bytes_copied(), bytes + 4096);
  v1::Open small = GaussianOpen(v1::DTYPE_F32, shape, 0, 1);
  small.mutable_options()->set_output_chunk_bytes(4096);
  EXPECT_EQ(Stream(server, small, {data}).bytes_copied(), 2 * bytes) << "every chunk is short";
}

TEST_P(Timing, AResultInsideTheLastMessageIsCopiedThreeTimes) {
  TestServer server(device(), options_);
  const std::string a = Floats(kBytes / 4, 1), b = Floats(kBytes / 4, 2);
  // Gathered from pieces, serialised, and handed to gRPC: 8 bytes, and 700 values.
  EXPECT_EQ(Stream(server, RmseOpen(v1::DTYPE_F32, kShape), {a, b}).bytes_copied(), 2 * kBytes + 3 * 8);
  EXPECT_EQ(Stream(server, RmseOpen(v1::DTYPE_F32, kShape, {1}), {a, b}).bytes_copied(),
            2 * kBytes + 3 * 8 * 700);
}

TEST_P(Timing, UnaryCallsCopyInAndOut) {
  TestServer server(device(), options_);
  const auto stub = v1::Kernels::NewStub(server.Connect());
  const std::string a = Floats(200'000, 1), b = Floats(200'000, 2);
  grpc::ClientContext context, second;
  v1::RmseResponse rmse;
  ASSERT_TRUE(stub->Rmse(&context, RmseCall({200'000}, a, b), &rmse).ok());
  EXPECT_EQ(rmse.timing().bytes_copied(), 1'600'000u + 8u);
  v1::TransposeRequest request;
  SetSpec(request.mutable_input()->mutable_spec(), v1::DTYPE_F32, {500, 400});
  request.mutable_input()->set_data(a);
  v1::TransposeResponse transpose;
  ASSERT_TRUE(stub->Transpose(&second, request, &transpose).ok());
  EXPECT_EQ(transpose.timing().bytes_copied(), 2 * 800'000u);
  EXPECT_EQ(server.engine().stats().bytes_copied_by_cpu, 1'600'008u + 1'600'000u);
}

using Place = std::tuple<uint32_t, uint64_t>;  // operand, block

/// How many bytes the spans of a stage tell for each block.
std::map<Place, uint64_t> BytesOf(const v1::Timing& timing, v1::Stage stage) {
  std::map<Place, uint64_t> bytes;
  for (const auto& span : timing.spans())
    if (span.stage() == stage) bytes[{span.operand(), span.index()}] += span.bytes();
  return bytes;
}

std::map<Place, uint64_t> Blocks(uint32_t operands) {
  std::map<Place, uint64_t> bytes;
  for (uint32_t operand = 0; operand < operands; ++operand)
    for (uint64_t block = 0; block < kBlocks; ++block)
      bytes[{operand, block}] = std::min(kBlock, kBytes - block * kBlock);
  return bytes;
}

TEST_P(Timing, SpansTellEveryBlockOnItsWayIn) {
  TestServer server(device(), options_);
  const std::string a = Floats(kBytes / 4, 1), b = Floats(kBytes / 4, 2);
  const auto timing = Stream(server, RmseOpen(v1::DTYPE_F32, kShape, {1}), {a, b}, 10'000);
  EXPECT_EQ(timing.spans_dropped(), 0u);
  EXPECT_EQ(BytesOf(timing, v1::STAGE_STAGE), Blocks(2));
  EXPECT_EQ(BytesOf(timing, v1::STAGE_H2D), staged() ? Blocks(2) : (std::map<Place, uint64_t>{}));
  uint64_t received = 0, messages = 0;
  for (const auto& [place, bytes] : BytesOf(timing, v1::STAGE_RECEIVE)) received += bytes;
  for (const auto& span : timing.spans()) messages += span.stage() == v1::STAGE_RECEIVE;
  EXPECT_EQ(received, 2 * kBytes);
  EXPECT_EQ(messages, 2 * (kBytes / 10'000));
}

TEST_P(Timing, SpansTellEveryRangeAndEveryBlockOfTheResult) {
  TestServer server(device(), options_);
  const std::string data = Floats(kBytes / 4, 1);
  const auto timing = Stream(server, GaussianOpen(v1::DTYPE_F32, kShape, 0, 1), {data});
  const auto kernels = BytesOf(timing, v1::STAGE_KERNEL);
  EXPECT_EQ(kernels.size(), timing.ranges());
  uint64_t read = 0;
  for (const auto& [place, bytes] : kernels) read += bytes;
  EXPECT_EQ(read, kBytes);
  EXPECT_EQ(BytesOf(timing, v1::STAGE_D2H), staged() ? Blocks(1) : (std::map<Place, uint64_t>{}));
  uint64_t sent = 0;
  for (const auto& [place, bytes] : BytesOf(timing, v1::STAGE_SEND)) sent += bytes;
  EXPECT_EQ(sent, kBytes);
  for (const auto& span : timing.spans())
    if (span.stage() >= v1::STAGE_H2D && span.stage() <= v1::STAGE_D2H) {
      EXPECT_LT(span.track(), 2u) << "lanes";
    } else {
      EXPECT_EQ(span.track(), 0u) << "one stream";
    }
}

TEST_P(Timing, SpansSayWhichStreamCarriedWhat) {
  TestServer server(device(), options_);
  const std::string data = Floats(kBytes / 4, 1);
  v1::Open open = Striped(TransposeOpen(v1::DTYPE_F32, kShape), 2);
  open.mutable_options()->set_trace(true);
  RawStream first(server.Connect());
  ASSERT_TRUE(first.Open(open));
  JoinedStream second(server.Connect());
  ASSERT_TRUE(second.Join(first.opened.job()));
  // The first ten blocks on the first stream, the others on the second.
  ASSERT_TRUE(second.SendAll(0, data, kBlock, 10 * kBlock));
  ASSERT_TRUE(first.SendAll(0, data, kBlock, 0, 10 * kBlock));
  std::map<uint64_t, std::string> pieces;
  std::mutex mutex;
  grpc::Status joined;
  std::thread other([&] {
    second.stream->WritesDone();
    joined = DrainPieces(second, &pieces, &mutex);
  });
  first.stream->WritesDone();
  EXPECT_TRUE(DrainPieces(first, &pieces, &mutex).ok());
  other.join();
  EXPECT_TRUE(joined.ok()) << joined.error_message();
  std::map<uint32_t, uint64_t> sent;
  for (const auto& span : first.result.timing().spans()) {
    if (span.stage() == v1::STAGE_RECEIVE || span.stage() == v1::STAGE_STAGE) {
      EXPECT_EQ(span.track(), span.index() < 10 ? 0u : 1u) << span.index();
    }
    if (span.stage() == v1::STAGE_SEND) sent[span.track()] += span.bytes();
  }
  EXPECT_EQ(sent[0] + sent[1], kBytes);
  EXPECT_EQ(sent.size(), 2u);
  EXPECT_EQ(first.result.timing().bytes_copied(), kBytes);
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing
