// Regions: registering, unregistering and listing memory of clients on this host.
#pragma once

#include "server/rpc/calls/unary.h"

namespace tilewire::rpc {

Task<Status> ServeRegister(UnaryCall& call, grpc::ByteBuffer* reply);
Task<Status> ServeUnregister(UnaryCall& call, grpc::ByteBuffer* reply);
Task<Status> ServeListRegions(UnaryCall& call, grpc::ByteBuffer* reply);

}  // namespace tilewire::rpc
