// What a call is about, and how an attempt at it ended. Internal to the library.
#pragma once

#include <grpcpp/client_context.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/span_recorder.h"

namespace tilewire::client {

/// Not by the wall clock, which may be set while a call runs.
using Deadline = std::optional<std::chrono::steady_clock::time_point>;

/// Stores its operand.
struct PutTask {};
/// Brings a resident array.
struct GetTask {
  std::string id;
};
using Task = std::variant<Operation, PutTask, GetTask>;

/// A call, whichever form it takes. References outlive the attempts.
struct CallSpec {
  Task task;
  std::vector<ArraySource> sources;
  /// Of the results: known to streams that bring them, else maybe not.
  std::optional<std::vector<ArraySpec>> results;
  std::optional<StoreOptions> store;  ///< the results stay at the server,
  std::optional<RegionPlace> into;    ///< or go there
  const ResultSink& sink;
  const CallOptions& options;
  const ConnectOptions& connect;  ///< WithHeader
  Deadline deadline;
  SpanRecorder* recorder = nullptr;  ///< of a traced call

  /// Bytes that cross the wire: of the operands, and of the results (none where that is not known).
  uint64_t bytes_to_send() const {
    uint64_t bytes = 0;
    for (const auto& source : sources) bytes += source.wire_bytes();
    return bytes;
  }
  uint64_t bytes_to_receive() const {
    uint64_t bytes = 0;
    if (results && sends_result())
      for (const ArraySpec& result : *results) bytes += static_cast<uint64_t>(result.bytes());
    return bytes;
  }
  /// Whether the results come over the wire.
  bool sends_result() const { return !store && !into; }
};

/// How an attempt ended.
struct Attempt {
  Status status;
  Moved moved = Moved::kNothing;
  Reply reply;  ///< valid when status is OK
};

/// INVALID_ARGUMENT for a token that cannot be sent, or not to that address (MaySendToken). Never with the
/// token.
Status CheckToken(const std::string& address, const ConnectOptions& connect);
/// INVALID_ARGUMENT for metadata that gRPC would end the program over: keys and values with characters that
/// headers cannot have, a request id of more than 128 characters.
Status CheckMetadata(const ConnectOptions& connect, const CallOptions& options);

/// The options with their token as each call sends it, put together once.
ConnectOptions WithHeader(ConnectOptions options);
/// Deadline and metadata of a call; `connect` is WithHeader.
void Prepare(const ConnectOptions& connect, const CallOptions& options, Deadline deadline,
             grpc::ClientContext* context);

/// All attributes of an operation. INVALID_ARGUMENT where it is none that this client knows, or where one is
/// unknown or of another kind.
Result<Attributes> AttributesOf(const Operation& operation);
/// As ResultSpecs, where enough of the operands is known to tell; nothing where it is not.
Result<std::optional<std::vector<ArraySpec>>> ResultSpecsIfKnown(const Operation& operation,
                                                                 std::span<const ArraySource> operands);

}  // namespace tilewire::client
