// Who calls, and what a call says of itself. The one place that decides who; jobs, quotas and arrays store
// what it says.
#pragma once

#include <grpcpp/server_context.h>

#include <string>

#include "server/rpc/calls/observer.h"

namespace tilewire::rpc {

/// "anonymous", or the value of the metadata key `header` where the operator named one (for a proxy that is
/// trusted to set it). A missing, empty, over-long or unprintable value is "anonymous" too.
std::string Identity(const grpc::ServerContextBase& context, const std::string& header);

/// 16 random hexadecimal digits.
std::string MakeRequestId();

/// A metadata key's value; empty where it is missing, unprintable or over 128 bytes.
std::string IncomingText(const grpc::ServerContextBase& context, const std::string& key);

/// Reads a call's metadata into its record: ids, peer, identity. The reply's metadata say the ids back.
void Introduce(grpc::ServerContextBase* context, const std::string& identity_header, CallRecord* record);

}  // namespace tilewire::rpc
