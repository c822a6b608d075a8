// What the tests of striped jobs share.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/integration/helpers.h"

namespace tilewire::testing {

inline constexpr uint64_t kBlock = 64 << 10;
inline const std::vector<int64_t> kShape{700, 1000};  // 2,800,000 bytes: 42 blocks and a short one
inline constexpr uint64_t kBytes = 2'800'000, kBlocks = (kBytes + kBlock - 1) / kBlock;

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

}  // namespace tilewire::testing
