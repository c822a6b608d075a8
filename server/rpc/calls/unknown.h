// Calls of methods that no service has.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>

#include "server/rpc/calls/context.h"
#include "server/rpc/transport/acceptors.h"
#include "server/rpc/transport/coroutine.h"

namespace tilewire::rpc {

/// Answers them UNIMPLEMENTED `UNKNOWN_METHOD`, with a record like every other call's; of what they send
/// nothing is read. Outlives the server.
class UnknownMethods {
 public:
  /// `shared` outlives the calls.
  explicit UnknownMethods(CallContext* shared) : shared_(shared) {}
  void RegisterWith(grpc::ServerBuilder* builder) { builder->RegisterAsyncGenericService(&service_); }
  /// From now on they are taken from that queue of the server, until it shuts down.
  void Accept(grpc::ServerCompletionQueue* queue);
  /// Returns when nothing asks for another. After the server's shutdown.
  void WaitAccepted() { acceptors_.WaitEnded(); }

 private:
  struct Unknown;
  Detached AcceptNext(grpc::ServerCompletionQueue* queue);
  Detached Refuse(std::unique_ptr<Unknown> call);

  CallContext* const shared_;
  Acceptors acceptors_;
  grpc::AsyncGenericService service_;
};

/// How a path that a client made up is logged and told: visible ASCII, at most 128 characters of it, and
/// never like the name of a method that exists.
std::string PrintableMethod(const std::string& path);

}  // namespace tilewire::rpc
