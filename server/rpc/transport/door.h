// Where connections that our listener took are handed to gRPC.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <memory>

#include "server/rpc/listener/file_descriptor.h"

namespace tilewire::rpc {

using Door = std::shared_ptr<grpc::experimental::ExternalConnectionAcceptor>;

/// A door of the server that `builder` makes. What comes in by it speaks as `credentials` say.
Door MakeDoor(grpc::ServerBuilder* builder, std::shared_ptr<grpc::ServerCredentials> credentials);

/// Hands a connected socket over, which gRPC closes. Only between the server's start and its shutdown.
void Enter(const Door& door, FileDescriptor connection);

/// Whether the server that `builder` makes answers gRPC reflection. To be said of each: linking the
/// reflection library registers it with all servers.
void ApplyReflection(bool reflection, grpc::ServerBuilder* builder);

}  // namespace tilewire::rpc
