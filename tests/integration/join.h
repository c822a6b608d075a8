// What the tests of striped jobs share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/cpp/client.h"
#include "tests/integration/helpers.h"

namespace tilewire::testing {

inline constexpr uint64_t kBlock = 64 << 10;
inline const std::vector<int64_t> kShape{700, 1000};  // 2,800,000 bytes: 42 blocks and a short one
inline constexpr uint64_t kBytes = 2'800'000, kBlocks = (kBytes + kBlock - 1) / kBlock;

inline client::ArraySource Source(const std::string& bytes, const std::vector<int64_t>& shape = kShape) {
  return client::ArraySource::FromMemory(MakeSpec(DType::kF32, shape).value(), bytes.data());
}

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

inline v1::Open Striped(v1::Open open, uint32_t streams) {
  open.mutable_options()->set_streams(streams);
  return open;
}

/// Reads a stream of a striped job to its end, its output into `pieces` by offset.
inline grpc::Status DrainPieces(RawStream& raw, std::map<uint64_t, std::string>* pieces, std::mutex* mutex) {
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

/// Sends the share of a stream: its first argument, number its second.
using Share = std::function<void(RawStream&, size_t)>;

/// Runs a striped job with `count` streams, each on a connection and a thread of its own that reads all the
/// while; returns its output, which must come whole and each byte once.
inline std::string RunStreams(TestServer& server, const v1::Open& open, size_t count, const Share& share) {
  RawStream first(server.Connect());
  EXPECT_TRUE(first.Open(Striped(open, static_cast<uint32_t>(count))));
  EXPECT_GE(first.opened.max_streams(), count);
  std::vector<std::unique_ptr<JoinedStream>> joined;
  for (size_t i = 1; i < count; ++i) {
    joined.push_back(std::make_unique<JoinedStream>(server.Connect()));
    EXPECT_TRUE(joined.back()->Join(first.opened.job()));
    EXPECT_EQ(joined.back()->number, i);
  }
  std::map<uint64_t, std::string> pieces;
  std::mutex mutex;
  const auto carry = [&](RawStream& raw, size_t number) {
    std::thread reader([&] {
      const auto status = DrainPieces(raw, &pieces, &mutex);
      EXPECT_TRUE(status.ok()) << number << ": " << status.error_message();
    });
    share(raw, number);
    raw.stream->WritesDone();
    reader.join();
  };
  std::vector<std::thread> threads;
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

}  // namespace tilewire::testing
