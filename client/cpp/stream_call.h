// One attempt of a streamed call, Kernels.Execute. Internal to the library.
//
// A single-threaded event loop over one completion queue:
//   StartCall -> Write(Open), Read -> … Opened arrives -> Write(chunk), Write(chunk), …, WritesDone
//                                      while every Read brings an output chunk or the Result -> end of stream
//                                      -> Finish
// At most one write and one read are under way. Reading never waits for writing, so a server that answers,
// refuses or leaves while chunks are still being sent is noticed at once.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/convert.h"
#include "client/cpp/release_gate.h"
#include "client/cpp/schedule.h"
#include "proto/wire/codec.h"

namespace tilewire::client {

/// What a call is about, whichever form it takes. References outlive the attempts.
struct CallSpec {
  const Operation& operation;
  std::vector<ArraySource> sources;
  ArraySpec result;
  const Sink& sink;
  const CallOptions& options;
  std::optional<std::chrono::system_clock::time_point> deadline;
};

/// How an attempt ended.
struct Attempt {
  Status status;
  bool anything_sent = false;  ///< operand bytes were handed to gRPC
  Reply reply;                 ///< valid when status is OK
};

/// Deadline and metadata of a call.
void Prepare(const CallOptions& options, std::optional<std::chrono::system_clock::time_point> deadline,
             grpc::ClientContext* context);

/// Runs one attempt. Not thread-safe; one object an attempt. When Run returns, gRPC holds none of the
/// sources' bytes.
class StreamCall {
 public:
  /// Takes the channel over; see TakeChannel.
  StreamCall(const CallSpec& spec, std::shared_ptr<grpc::Channel> channel);
  ~StreamCall();

  Attempt Run();
  /// The channel, for the next call; null when it had to be given up.
  std::shared_ptr<grpc::Channel> TakeChannel() { return std::move(channel_); }

 private:
  void Loop();
  void OnEvent(intptr_t tag, bool ok);
  void Open();
  void WriteNext();
  void OnMessage();
  Status HandleOpened(const v1::Opened& opened);
  Status HandleChunk(const wire::ChunkView& chunk);
  Status HandleResult(const v1::Result& result);
  Status Deliver(const wire::Pieces& pieces);
  void Abort(Status why);
  void ReportProgress() const;
  void AwaitReleases();
  Attempt Conclude();

  const CallSpec& spec_;
  std::shared_ptr<grpc::Channel> channel_;
  std::optional<grpc::GenericStub> stub_;
  grpc::CompletionQueue queue_;
  std::optional<grpc::ClientContext> context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  std::shared_ptr<ReleaseGate> gate_ = std::make_shared<ReleaseGate>();
  std::vector<SourceReader> readers_;
  std::optional<Schedule> schedule_;  ///< set by Opened

  int pending_ = 0;  ///< operations whose tags have not come back
  bool writing_ = false, half_closed_ = false, finishing_ = false, opened_ = false, result_seen_ = false;
  grpc::ByteBuffer incoming_;
  grpc::Status final_;
  Status abort_;  ///< why this side ended the call, if it did
  Progress progress_;
  ChunkPlan last_chunk_{};
  Reply reply_;
};

}  // namespace tilewire::client
