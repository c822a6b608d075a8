// Jobs that several streams carry: striping, and every way in which it can go wrong.
#include <algorithm>
#include <map>
#include <random>

#include "tests/integration/helpers.h"

namespace tilewire::testing {
namespace {

constexpr uint64_t kBlock = 64 << 10;
const std::vector<int64_t> kShape{700, 1000};  // 2,800,000 bytes: 42 blocks and a short one
constexpr uint64_t kBytes = 2'800'000, kBlocks = (kBytes + kBlock - 1) / kBlock;

/// A further stream of a job. Output comes in pieces, ascending.
class JoinedStream : public RawStream {
 public:
  using RawStream::RawStream;
  /// Whether Joined came back.
  bool Join(const std::string& job) {
    Start();
    v1::ExecuteRequest request;
    request.mutable_join()->set_job(job);
    stream->Write(request);
    v1::ExecuteResponse response;
    if (!stream->Read(&response) || !response.has_joined()) return false;
    number = response.joined().stream();
    return true;
  }
  uint32_t number = 0;
};

/// Reads a stream of a striped job to its end, its output into `pieces` by offset.
grpc::Status DrainPieces(RawStream& raw, std::map<uint64_t, std::string>* pieces, std::mutex* mutex) {
  v1::ExecuteResponse response;
  uint64_t next = 0;
  while (raw.stream->Read(&response)) {
    if (response.has_chunk()) {
      EXPECT_GE(response.chunk().offset(), next);
      next = response.chunk().offset() + response.chunk().data().size();
      std::lock_guard lock(*mutex);
      pieces->emplace(response.chunk().offset(), response.chunk().data());
    }
    if (response.has_result()) raw.result = response.result();
  }
  return raw.stream->Finish();
}

v1::Open Striped(v1::Open open, uint32_t streams) {
  open.mutable_options()->set_streams(streams);
  return open;
}

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

/// Runs a striped job with `count` streams, each on a connection and a thread of its own.
std::string RunStriped(TestServer& server, const v1::Open& open, const std::vector<std::string>& operands,
                       size_t count, size_t step, uint64_t seed) {
  std::map<uint64_t, std::string> pieces;
  std::mutex mutex;
  RawStream first(server.Connect());
  EXPECT_TRUE(first.Open(Striped(open, static_cast<uint32_t>(count))));
  EXPECT_GE(first.opened.max_streams(), count);
  std::vector<std::unique_ptr<JoinedStream>> joined;
  for (size_t i = 1; i < count; ++i) {
    joined.push_back(std::make_unique<JoinedStream>(server.Connect()));
    EXPECT_TRUE(joined.back()->Join(first.opened.job()));
    EXPECT_EQ(joined.back()->number, i);
  }
  std::vector<std::thread> threads;
  const auto carry = [&](RawStream& raw, size_t number) {
    std::thread reader([&] {
      const auto status = DrainPieces(raw, &pieces, &mutex);
      EXPECT_TRUE(status.ok()) << number << ": " << status.error_message();
    });
    SendShare(raw, operands, number, count, step, seed + number);
    raw.stream->WritesDone();
    reader.join();
  };
  for (size_t i = 1; i < count; ++i) threads.emplace_back([&, i] { carry(*joined[i - 1], i); });
  carry(first, 0);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(first.result.timing().streams(), count);
  std::string output = first.result.results_size() > 0 ? first.result.results(0).data() : "";
  for (const auto& [offset, bytes] : pieces) {
    EXPECT_EQ(offset, output.size());
    output += bytes;
  }
  return output;
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

TEST_P(Join, RefusedJoinsDoTheJobNoHarm) {
  options_.engine.max_streams = 2;
  options_.rpc.identity_header = "x-user";
  TestServer server(device(), options_), other(device(), options_);
  const std::string a = Floats(kBytes / 4, 5), b = Floats(kBytes / 4, 6);
  RawStream first(server.Connect());
  first.context.AddMetadata("x-user", "ann");
  ASSERT_TRUE(first.Open(Striped(RmseOpen(v1::DTYPE_F32, kShape), 9)));
  EXPECT_EQ(first.opened.max_streams(), 2u);
  const std::string job = first.opened.job();
  const auto refused = [](TestServer& at, const std::string& user, const std::string& id) {
    JoinedStream stream(at.Connect());
    stream.context.AddMetadata("x-user", user);
    EXPECT_FALSE(stream.Join(id));
    return stream.Drain();
  };
  ExpectError(refused(server, "ann", ""), grpc::StatusCode::FAILED_PRECONDITION, "WRONG_INSTANCE", "join.job",
              "");
  ExpectError(refused(server, "ann", job.substr(0, job.size() - 1) + "g"), grpc::StatusCode::NOT_FOUND, "JOB",
              "join.job");
  ExpectError(refused(server, "bob", job), grpc::StatusCode::NOT_FOUND, "JOB", "join.job", job);
  ExpectError(refused(other, "ann", job), grpc::StatusCode::FAILED_PRECONDITION, "WRONG_INSTANCE", "join.job",
              job);
  JoinedStream second(server.Connect());
  second.context.AddMetadata("x-user", "ann");
  ASSERT_TRUE(second.Join(job));
  ExpectError(refused(server, "ann", job), grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT",
              "streams of the job", "3", "2");
  ASSERT_TRUE(first.SendAll(0, a));
  ASSERT_TRUE(second.SendAll(1, b));
  first.stream->WritesDone();
  grpc::Status late;  // LIMIT until the server has seen the half-close
  EXPECT_TRUE(Eventually([&] {
    late = refused(server, "ann", job);
    return late.error_code() == grpc::StatusCode::FAILED_PRECONDITION;
  }));
  ExpectError(late, grpc::StatusCode::FAILED_PRECONDITION, "JOIN_LATE");
  EXPECT_TRUE(second.End().ok());
  EXPECT_TRUE(first.Drain().ok());
  EXPECT_TRUE(first.output == HostRmse(a, b, DType::kF32, kShape));
  server.ExpectIdle();
  ExpectError(refused(server, "ann", job), grpc::StatusCode::NOT_FOUND, "JOB", "join.job",
              job);  // it has ended
}

TEST_P(Join, AStreamThatIsLostEndsAllOfThem) {
  TestServer server(device(), options_);
  const std::string a = Floats(kBytes / 4, 8);
  struct Loss {
    const char* name;
    std::function<void(RawStream&)> happen;
    grpc::StatusCode code;
    std::string reason;
  };
  const std::vector<Loss> losses{
      {"cancelled", [](RawStream& s) { s.context.TryCancel(); }, grpc::StatusCode::CANCELLED, ""},
      {"broke the rule", [](RawStream& s) { s.Send(0, 1, "x"); }, grpc::StatusCode::INVALID_ARGUMENT,
       "RUN_RULE"},
      {"sent a byte twice",
       [&](RawStream& s) {
         s.Send(0, 0, std::string_view(a).substr(0, kBlock));
         s.Send(0, 0, "x");
       },
       grpc::StatusCode::INVALID_ARGUMENT, "RUN_RULE"},
      {"left a block open",
       [](RawStream& s) {
         s.Send(0, 5 * kBlock, "xxxx");
         s.stream->WritesDone();
       },
       grpc::StatusCode::INVALID_ARGUMENT, "BYTES_MISSING"},
      {"opened again",
       [](RawStream& s) {
         v1::ExecuteRequest again;
         again.mutable_join()->set_job("x");
         s.stream->Write(again);
       },
       grpc::StatusCode::INVALID_ARGUMENT, "BAD_MESSAGE"}};
  for (const Loss& loss : losses)
    for (const size_t victim : {0, 1, 2}) {
      SCOPED_TRACE(std::string(loss.name) + ", stream " + std::to_string(victim));
      RawStream first(server.Connect());
      JoinedStream second(server.Connect()), third(server.Connect());
      ASSERT_TRUE(first.Open(Striped(TransposeOpen(v1::DTYPE_F32, kShape), 3)));
      ASSERT_TRUE(second.Join(first.opened.job()));
      ASSERT_TRUE(third.Join(first.opened.job()));
      ASSERT_TRUE(second.SendAll(0, a, 1 << 20, 10 * kBlock, 12 * kBlock));
      RawStream* streams[] = {&first, &second, &third};
      loss.happen(*streams[victim]);
      for (size_t i = 0; i < 3; ++i) {
        const auto status = streams[i]->Drain();
        if (i != victim) {
          ExpectError(status, grpc::StatusCode::UNAVAILABLE, "STREAM_LOST");
        } else if (loss.reason.empty()) {
          EXPECT_EQ(status.error_code(), loss.code);
        } else {
          ExpectError(status, loss.code, loss.reason);
        }
      }
      server.ExpectIdle();
    }
  ExpectUnharmed(server);
}

TEST_P(Join, BytesThatNobodySentAreMissedWhenAllHaveEnded) {
  TestServer server(device(), options_);
  const std::string a = Floats(kBytes / 4, 8);
  RawStream first(server.Connect());
  JoinedStream second(server.Connect());
  ASSERT_TRUE(first.Open(Striped(TransposeOpen(v1::DTYPE_F32, kShape), 2)));
  ASSERT_TRUE(second.Join(first.opened.job()));
  ASSERT_TRUE(first.SendAll(0, a, 1 << 20, 0, 20 * kBlock));
  first.stream->WritesDone();
  ASSERT_TRUE(second.SendAll(0, a, 1 << 20, 21 * kBlock));
  second.stream->WritesDone();
  ExpectError(second.Drain(), grpc::StatusCode::INVALID_ARGUMENT, "BYTES_MISSING");
  ExpectError(first.Drain(), grpc::StatusCode::INVALID_ARGUMENT, "BYTES_MISSING");
  ExpectUnharmed(server);
}

TEST_P(Join, TheEarliestDeadlineEndsTheJob) {
  TestServer server(device(), options_);
  RawStream first(server.Connect());
  JoinedStream second(server.Connect(), 0.4);
  ASSERT_TRUE(first.Open(Striped(TransposeOpen(v1::DTYPE_F32, kShape), 2)));
  ASSERT_TRUE(second.Join(first.opened.job()));
  ExpectError(first.Drain(), grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE");
  EXPECT_EQ(second.Drain().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ExpectUnharmed(server);
}

TEST_P(Join, AStalledStreamIsGivenUpAndTheOthersAreTold) {
  options_.rpc.idle_seconds = 0.4;
  TestServer server(device(), options_);
  const std::string a = Floats(kBytes / 4, 8);
  RawStream first(server.Connect());
  JoinedStream second(server.Connect());
  ASSERT_TRUE(first.Open(Striped(TransposeOpen(v1::DTYPE_F32, kShape), 2)));
  ASSERT_TRUE(second.Join(first.opened.job()));
  ASSERT_TRUE(first.SendAll(0, a, 1 << 20, 0, 20 * kBlock));
  first.stream->WritesDone();  // its share is sent: nothing more is expected of it
  ExpectError(second.Drain(), grpc::StatusCode::DEADLINE_EXCEEDED, "IDLE");
  ExpectError(first.Drain(), grpc::StatusCode::UNAVAILABLE, "STREAM_LOST");
  ExpectUnharmed(server);
}

TEST_P(Join, WhileDrainingRunningJobsMayStillBeJoined) {
  TestServer server(device(), options_);
  const std::string a = Floats(kBytes / 4, 5), b = Floats(kBytes / 4, 6);
  RawStream first(server.Connect());
  ASSERT_TRUE(first.Open(Striped(RmseOpen(v1::DTYPE_F32, kShape), 2)));
  server.rpc().BeginDrain();
  JoinedStream second(server.Connect());
  ASSERT_TRUE(second.Join(first.opened.job()));
  ASSERT_TRUE(first.SendAll(0, a));
  ASSERT_TRUE(second.SendAll(1, b));
  EXPECT_TRUE(second.End().ok());
  EXPECT_TRUE(first.End().ok());
  EXPECT_TRUE(first.output == HostRmse(a, b, DType::kF32, kShape));
  server.ExpectIdle();
}

TILEWIRE_ON_BOTH(Join);

}  // namespace
}  // namespace tilewire::testing
