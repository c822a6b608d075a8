// Kernels.Execute and Arrays.Put: arrays of any size over one bidirectional stream.
//
//   Serve:        Open ─admission─> Opened, then output pieces ──> Chunks ──> Result ──> status
//   ReadChunks:   Chunk ──codec──> Intake ──> job … until half-close
//
// Two coroutines, one reading and one writing, so that neither waits for the other; the job ties them
// together. Only the writing one finishes the call. The next message is asked for before the last one is
// staged, where memory allows it: else the client waits for its window meanwhile.
#pragma once

#include <grpcpp/support/async_stream.h>

#include "server/engine/job/intake.h"
#include "server/rpc/calls/stream.h"
#include "server/rpc/transport/allowance.h"
#include "server/rpc/transport/receiving.h"
#include "server/rpc/transport/slices.h"

namespace tilewire::rpc {

/// A stream's next message, asked for ahead. One that no call may have is dropped when it comes, not when the
/// call gets to it.
class MessageRead final : public Ahead {
 public:
  void Complete(bool ok) override;

  grpc::ByteBuffer message;
  Status refusal;  ///< why `message` was dropped
};

class ExecuteCall final : public StreamCall {
 public:
  /// With `put_only` no other operation may be opened.
  ExecuteCall(CallContext* shared, Receiving* receive, std::string method, grpc::ServerCompletionQueue* queue,
              bool put_only)
      : StreamCall(shared, std::move(method), queue),
        stream(&context()),
        holding(&receive->accounts->streams, &share()),
        held_ahead(&receive->accounts->ahead, &share()),
        receiving_(*receive),
        put_only_(put_only) {}
  Task<Status> Serve() override;
  void StartWrite(const grpc::ByteBuffer& message, void* tag) override { stream.Write(message, tag); }
  void StartFinish(const grpc::Status& status, void* tag) override { stream.Finish(status, tag); }
  bool put_only() const { return put_only_; }
  /// Holds what gRPC may hold of it unread. As Allowance::Take.
  Status HoldWindow();
  /// Bytes of that beside messages.
  int64_t window() const { return window_; }

  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream;
  Holding holding;
  Holding held_ahead;     ///< for the message after the one being staged
  MessageRead next_read;  ///< stays while it is pending
  std::unique_ptr<engine::Intake> intake;

 private:
  const Receiving receiving_;
  int64_t window_ = 0;
  const bool put_only_;
};

}  // namespace tilewire::rpc
