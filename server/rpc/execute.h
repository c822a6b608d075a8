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
      : Call(shared, std::move(method), queue), stream(&context()), holding(&shared->streams) {}
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream;
  Holding holding;
  std::shared_ptr<engine::Job> job;
  std::unique_ptr<engine::Intake> intake;
};

/// Runs the call to its end.
Detached RunExecute(std::shared_ptr<ExecuteCall> call);

}  // namespace tilewire::rpc
