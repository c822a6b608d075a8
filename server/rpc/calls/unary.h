// Unary calls: one message in, one out, no streams. Small arrays and questions.
#pragma once

#include <grpcpp/support/async_stream.h>

#include <optional>

#include "server/rpc/calls/call.h"
#include "server/rpc/transport/receiving.h"

namespace tilewire::rpc {

/// A unary call on raw bytes.
class UnaryCall final : public Call {
 public:
  UnaryCall(CallContext* shared, Receiving* receive, std::string method, grpc::ServerCompletionQueue* queue)
      : Call(shared, std::move(method), queue),
        holding(&receive->accounts->unary, &share()),
        stream(&context()) {}

  Holding holding;
  bool computes = false;  ///< runs jobs, which may be refused before their operands are here
  grpc::ByteBuffer request;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream;  ///< one message each way
  std::optional<Timing> told;                                                ///< in the reply
};

/// Computes the reply of a call; the status goes to the client.
using UnaryHandler = Task<Status> (*)(UnaryCall& call, grpc::ByteBuffer* reply);

Task<Status> ServeRmse(UnaryCall& call, grpc::ByteBuffer* reply);
Task<Status> ServeTranspose(UnaryCall& call, grpc::ByteBuffer* reply);
Task<Status> ServeGaussianPdf(UnaryCall& call, grpc::ByteBuffer* reply);
/// What the three above do, and every later operation.
Task<Status> ServeCompute(UnaryCall& call, grpc::ByteBuffer* reply);
Task<Status> ServeDescribe(UnaryCall& call, grpc::ByteBuffer* reply);
Task<Status> ServeDescribeKernels(UnaryCall& call, grpc::ByteBuffer* reply);
Task<Status> ServeMeasureCeilings(UnaryCall& call, grpc::ByteBuffer* reply);

/// Runs a handler, when it is the call's turn, and finishes the call, whatever the handler does.
Detached RunUnary(std::shared_ptr<UnaryCall> call, UnaryHandler handler);

}  // namespace tilewire::rpc
