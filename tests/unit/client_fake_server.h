// A server of tilewire.v1 for tests of clients: computes with the host kernels, checks the protocol, and
// misbehaves on demand. Knows nothing of the real server.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tilewire::client::testing {

/// What the server does to the calls that come.
struct FakeBehaviour {
  uint64_t block_bytes = 64 << 10, window_bytes = 0, max_message_bytes = (4 << 20) + (64 << 10);
  uint64_t output_chunk_bytes = 100'000;
  int busy = 0;                          ///< that many calls are refused BUSY first
  int busy_later = 0;                    ///< streams: that many are refused BUSY when a chunk came
  std::optional<int64_t> pushback_ms;    ///< with BUSY
  std::string busy_field;                ///< likewise
  int unavailable = 0;                   ///< that many calls are refused UNAVAILABLE first
  int cut = 0;                           ///< calls that end as if the transport had cut them
  bool use_execute = false;              ///< unary calls are refused USE_EXECUTE
  bool silent = false;                   ///< calls are never answered
  bool stalled = false;                  ///< streams: nothing is read after Opened
  std::optional<int> fail_after_chunks;  ///< streams: DATA_LOSS with details after that many chunks
  bool no_kernels = false;               ///< DescribeKernels answers as a CPU device does
  bool serving = true;                   ///< what the health service says
  int lost = 0;                          ///< that many calls that store lose their answer: UNAVAILABLE
  uint32_t list_page = 1000;             ///< arrays of a page of List, at most
  bool late_joiner = false;  ///< Get ends well before the stream that joined it says Joined and brings a half

  enum class Lie {
    kNone,
    kNoOpened,
    kOpenedTwice,
    kNoResult,
    kMissingOutput,
    kRepeatedOutput,
    kTooMuchOutput,
    kWrongSpec,
    kWrongChecksum,
    kTwoResults,
    kShortData,
    kWrongBits,
    kNoId,      ///< a stored result without one
    kStored,    ///< a result that was to be sent has an id
    kSamePage,  ///< List's next page is the one that was asked for
  };
  Lie lie = Lie::kNone;
};

/// What came.
struct FakeLog {
  struct Chunk {
    uint32_t operand;
    uint64_t offset, bytes;
  };
  int calls = 0, streams = 0, cancelled = 0;  ///< streams: but for joined ones
  int stats = 0, lists = 0;                   ///< part of the calls
  int arrays = 0;                             ///< that are kept now
  std::vector<std::string> keys;              ///< idempotency keys of calls that store
  std::vector<Chunk> chunks;                  ///< of all streams, as they came
  std::vector<std::string> mistakes;          ///< violations of the contract by the client
  std::string request_id;                     ///< of the last call
  std::string who;                            ///< metadata of that name, of the last call
  // Of the last operation's options.
  bool trace = false, sequential = false;
  uint64_t block_bytes = 0;
  uint32_t lanes = 0;
};

/// Listens on loopback until destroyed. Thread-safe.
class FakeServer {
 public:
  /// `port` 0 picks a free one.
  explicit FakeServer(const FakeBehaviour& behaviour = {}, int port = 0);
  ~FakeServer();

  /// "127.0.0.1:PORT".
  std::string address() const;
  int port() const;
  /// For calls that come from now on.
  void Behave(const FakeBehaviour& behaviour);
  FakeLog log() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Any peer that accepts a streamed call, says Opened, offers endless flow control windows, and then never
/// reads its socket again: gRPC is left with payload that it can neither send nor forget.
class DeafPeer {
 public:
  DeafPeer();
  ~DeafPeer();
  std::string address() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tilewire::client::testing
