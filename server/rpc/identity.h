// Who calls. The one place that decides it; jobs, quotas and arrays store what it says.
#pragma once

#include <grpcpp/server_context.h>

#include <string>

namespace tilewire::rpc {

/// "anonymous", or the value of the metadata key `header` where the operator named one (for a proxy that is
/// trusted to set it). A missing, empty, over-long or unprintable value is "anonymous" too.
std::string Identity(const grpc::ServerContext& context, const std::string& header);

/// 16 random hexadecimal digits.
std::string MakeRequestId();

}  // namespace tilewire::rpc
