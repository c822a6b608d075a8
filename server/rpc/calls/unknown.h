// Calls of methods that no service has.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <string>

#include "server/rpc/calls/context.h"

namespace tilewire::rpc {

/// Answers them UNIMPLEMENTED `UNKNOWN_METHOD`, with a record like every other call's; of what they send
/// nothing is read. By gRPC's callback API: its health service is made with that, and gRPC 1.51 takes no
/// generic service of another kind beside it.
class UnknownMethods final : public grpc::CallbackGenericService {
 public:
  /// `shared` outlives the calls.
  explicit UnknownMethods(CallContext* shared) : shared_(shared) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;

 private:
  CallContext* const shared_;
};

/// How a path that a client made up is logged and told: visible ASCII, at most 128 characters of it, and
/// never like the name of a method that exists.
std::string PrintableMethod(const std::string& path);

}  // namespace tilewire::rpc
