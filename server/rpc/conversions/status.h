// The one place where Status becomes a gRPC status.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "kernels/array/status.h"

namespace tilewire::rpc {

/// Code and message, with google.rpc.Status{ErrorInfo{reason, "tilewire", field/value/allowed}} as details.
/// INTERNAL messages are scrubbed: what went wrong inside is for the log.
grpc::Status ToGrpc(const Status& status);

/// Adds `grpc-retry-pushback-ms` where the status says when a retry is worth it. Call before Finish.
void AddRetryPushback(const Status& status, grpc::ServerContext* context);

}  // namespace tilewire::rpc
