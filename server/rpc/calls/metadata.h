// What a call says of itself, and who calls. The one place that decides who; jobs, quotas and arrays store
// what it says.
#pragma once

#include <grpcpp/server_context.h>

#include <chrono>
#include <optional>
#include <string>

#include "kernels/array/status.h"
#include "server/base/time_source.h"

namespace tilewire::rpc {

struct Metadata {
  std::string request_id, traceparent, peer, identity;
  Status refused;    ///< why nobody knows who calls; the call ends so
  bool own = false;  ///< the server's own probe, which is neither logged nor counted
  std::chrono::system_clock::time_point deadline = std::chrono::system_clock::time_point::max();

  /// How long until the client's deadline by gRPC's clock, if there is one.
  std::optional<Clock::duration> TimeLeft() const;
  /// Whose turns, places and rates its jobs take: the identity's; anonymous callers' by where they come from.
  std::string Share() const;
};

/// Of a call that has just come. The reply's metadata say the ids back. `probe_token` marks the server's own
/// calls; `identity_header` as Identity().
Metadata ReadMetadata(grpc::ServerContextBase* context, const std::string& identity_header,
                      const std::string& probe_token);

/// "anonymous", or the value of the metadata key `header` where the operator named one (for a proxy that is
/// trusted to set it, once). UNAUTHENTICATED `IDENTITY` where it is missing, there twice, empty, over-long or
/// unprintable: a proxy that fails to say who calls must not make everybody the same.
Result<std::string> Identity(const grpc::ServerContextBase& context, const std::string& header);

/// 16 random hexadecimal digits.
std::string MakeRequestId();

}  // namespace tilewire::rpc
