// What calls that stream their reply share: sending output and result, and ending.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/rpc/calls/call.h"
#include "server/rpc/transport/queue_thread.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::rpc {

/// A call whose reply is a stream of ExecuteResponses.
class StreamCall : public Call {
 public:
  using Call::Call;
  /// The call from its first message to the last one of its reply; only the status is left.
  virtual Task<Status> Serve() = 0;
  // Start one operation with that tag.
  virtual void StartWrite(const grpc::ByteBuffer& message, void* tag) = 0;
  virtual void StartFinish(const grpc::Status& status, void* tag) = 0;

  std::shared_ptr<engine::Job> job;
  QueueThread::Stay stay;  ///< with the thread of its queue

 private:
  bool is_stream() const override { return true; }
};

/// Runs the call to its end.
Detached RunStream(std::shared_ptr<StreamCall> call);

/// Where a call's spans are drawn.
inline uint32_t Track(const StreamCall& call) {
  return static_cast<uint32_t>(call.stream_number());
}
/// What a call that was cut off ends with.
Status Disconnected();
/// Sends a message; false when the client is gone.
QueueTask<bool> Write(StreamCall& call, grpc::ByteBuffer buffer);
QueueTask<bool> Write(StreamCall& call, const v1::ExecuteResponse& response);
/// What the client is told of the admitted job.
void FillOpened(const StreamCall& call, v1::Opened* opened);
/// Sends the runs of output that fall to this stream. Results that go into the Result message are gathered
/// in `inlined`, one by one, by the first stream; the others then send none.
Task<Status> SendOutput(StreamCall& call, size_t chunk_bytes, std::vector<std::string>* inlined);
/// Sends the Result, with where the results are if they were not sent.
QueueTask<Status> SendResult(StreamCall& call, std::vector<std::string> inlined);

}  // namespace tilewire::rpc
