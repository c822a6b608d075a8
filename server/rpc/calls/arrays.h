// Arrays: getting, asking about, listing and deleting what stays on the device. Put is in execute.h.
#pragma once

#include <grpcpp/support/async_stream.h>

#include "server/rpc/calls/stream.h"
#include "server/rpc/calls/unary.h"

namespace tilewire::rpc {

/// Arrays.Get: a job without input.
class GetCall final : public StreamCall {
 public:
  GetCall(CallContext* shared, std::string method, grpc::ServerCompletionQueue* queue)
      : StreamCall(shared, std::move(method), queue), writer(&context()) {}
  Task<Status> Serve() override;
  void StartWrite(const grpc::ByteBuffer& message, void* tag) override { writer.Write(message, tag); }
  void StartFinish(const grpc::Status& status, void* tag) override { writer.Finish(status, tag); }

  grpc::ByteBuffer request;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer;
};

Task<Status> ServeStat(UnaryCall& call, grpc::ByteBuffer* reply);
Task<Status> ServeList(UnaryCall& call, grpc::ByteBuffer* reply);
Task<Status> ServeDelete(UnaryCall& call, grpc::ByteBuffer* reply);

}  // namespace tilewire::rpc
