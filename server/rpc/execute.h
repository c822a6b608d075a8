// Kernels.Execute: arrays of any size over one bidirectional stream.
//
//   ServeExecute: Open ─admission─> Opened, then output pieces ──> Chunks ──> Result ──> status
//   ReadChunks:   Chunk ──codec──> Intake ──> job … until half-close
//
// Two coroutines, one reading and one writing, so that neither waits for the other; the job ties them
// together. Only the writing one finishes the call.
#pragma once

#include <grpcpp/support/async_stream.h>

#include "server/rpc/call.h"

namespace tilewire::rpc {

class ExecuteCall final : public Call {
 public:
  ExecuteCall(CallContext* shared, std::string method, grpc::ServerCompletionQueue* queue)
      : Call(shared, std::move(method), queue), stream(&context()) {}
  ~ExecuteCall() override;

  /// Watches for a stalled client from now on.
  void StartIdleWatch();
  void StopIdleWatch();

  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream;
  std::shared_ptr<engine::Job> job;
  std::unique_ptr<engine::Intake> intake;

  // What the idle watch looks at: whether the call waits for the client, and what has been achieved.
  std::atomic<bool> reading{false}, writing{false}, opened{false};
  std::atomic<uint64_t> messages_written{0}, blocks_read{0};

 private:
  void Look(uint64_t last_progress, TimePoint since);
  std::mutex watch_mutex_;
  engine::Timer::Id watch_ = 0;
  bool watching_ = false;
};

/// Runs the call to its end.
Detached RunExecute(std::shared_ptr<ExecuteCall> call);

}  // namespace tilewire::rpc
