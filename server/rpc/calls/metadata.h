// What a call says of itself, and who calls: brings identity/rules.h what gRPC knows. Jobs, quotas and arrays
// store what it says.
#pragma once

#include <grpcpp/server_context.h>

#include <memory>
#include <optional>
#include <string>

#include "kernels/array/status.h"
#include "server/base/time_source.h"
#include "server/rpc/calls/context.h"

namespace tilewire::rpc {

struct Metadata {
  std::string request_id, traceparent, peer;
  std::string identity;  ///< Identity::Text()
  /// Whose turns, places and rates its jobs take: the identity's; anonymous callers' by where they come from.
  std::string share;
  Status refused;  ///< why nobody knows who calls, or that he may not; the call ends so
  /// What calls were judged by when it came, and what it may goes by to its end. Not null.
  std::shared_ptr<const CallCredentials> judged_by;
  bool own = false;                       ///< the server's own probe, which is neither logged nor counted
  TimePoint deadline = TimePoint::max();  ///< the client's; max: none within a year

  /// How long until the client's deadline, if there is one.
  std::optional<Clock::duration> TimeLeft() const;
};

/// Of a call that has just come. The reply's metadata say the ids back. Who calls goes by the rules and the
/// credentials of `shared` (identity/rules.h); `probe_token` marks the server's own calls, which nobody need
/// vouch for.
Metadata ReadMetadata(grpc::ServerContextBase* context, const CallContext& shared,
                      const std::string& probe_token);

/// 16 random hexadecimal digits.
std::string MakeRequestId();

}  // namespace tilewire::rpc
