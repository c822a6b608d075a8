// One stream of a job: the first, which opens it, or one that joins it. Internal to
// the library.
//
// A single-threaded event loop over one completion queue:
//   StartCall -> Write(first message), Read -> … Opened or Joined arrives -> Write(chunk), …, WritesDone
//                                      while every Read brings an output chunk or the Result -> end of stream
//                                      -> Finish
// At most one write and one read are under way. Reading never waits for writing, so a server that answers,
// refuses or leaves while chunks are still being sent is noticed at once.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cpp/call_spec.h"
#include "client/cpp/release_gate.h"
#include "client/cpp/request.h"
#include "client/cpp/schedule.h"
#include "client/cpp/stripe.h"
#include "proto/wire/codec.h"
#include "server/base/mutex.h"

namespace tilewire::client {

/// Runs one stream. Not thread-safe, but for Cancel; one object a stream. When Run returns, gRPC holds none
/// of the sources' bytes.
class StreamCall {
 public:
  /// What the server said when it admitted the job.
  using OnOpened = std::function<Status(const v1::Opened&)>;

  /// Takes the channel over; see TakeChannel. `stripe` is shared by the streams of the call.
  StreamCall(const CallSpec& spec, Stripe* stripe, std::shared_ptr<grpc::Channel> channel);
  ~StreamCall();

  /// As the first stream: opens the job for up to `streams` streams, calls `on_opened`, then carries turns.
  /// The reply is valid when the status is OK.
  Status RunFirst(uint32_t streams, OnOpened on_opened, Reply* reply);
  /// As a further stream of `job`. Where it was not opened() the call goes on without it.
  Status RunJoined(const std::string& job);
  /// Whether the server took the stream. Any thread.
  bool opened() const { return opened_.load(); }
  /// Ends the stream soon, from any thread, at any time.
  void Cancel() {
    const MutexLock lock(context_mutex_);
    if (context_) context_->TryCancel();
  }

  /// The channel, for the next call; null when it had to be given up.
  std::shared_ptr<grpc::Channel> TakeChannel() { return std::move(channel_); }

 private:
  Status Run();
  void Loop();
  void OnEvent(intptr_t tag, bool ok);
  void ReadNext();
  void WriteFirst();
  void WriteNext();
  void OnMessage();
  Status HandleResponse(const v1::ExecuteResponse& response);
  Status HandleChunk(const wire::ChunkView& chunk);
  Status HandleResult(const v1::Result& result);
  void Abort(Status why);
  void AwaitReleases();

  const CallSpec& spec_;
  Stripe* const stripe_;
  std::shared_ptr<grpc::Channel> channel_;
  std::optional<grpc::GenericStub> stub_;
  grpc::CompletionQueue queue_;
  Mutex context_mutex_;  ///< against Cancel from other threads
  std::optional<grpc::ClientContext> context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  std::shared_ptr<ReleaseGate> gate_ = std::make_shared<ReleaseGate>();
  std::vector<std::optional<SourceReader>> readers_;  ///< of the operands that are sent
  StreamTrace trace_;
  FirstMessage first_;
  OnOpened on_opened_;             ///< of the first stream
  std::optional<ChunkPlan> turn_;  ///< what is being sent, or was last

  int pending_ = 0;  ///< operations whose tags have not come back
  bool writing_ = false, half_closed_ = false, finishing_ = false, result_seen_ = false;
  std::atomic<bool> opened_{false};
  grpc::ByteBuffer incoming_;
  grpc::Status final_;
  Status abort_;                                     ///< why this side ended the call, if it did
  std::array<uint64_t, kMaxResults> next_output_{};  ///< of each result output on a stream ascends
  ChunkPlan last_chunk_{};
  Reply reply_;
};

}  // namespace tilewire::client
