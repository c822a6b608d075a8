// Transport settings of every Tilewire listener; the benchmarks' raw gRPC peers use the same.
#pragma once

#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/rpc/listener/limits.h"
#include "server/rpc/transport/receive_limits.h"

namespace tilewire::rpc {

/// Receive limits, messages as they came whatever their size or compression, connection limits.
void ApplyTransportSettings(const ReceiveLimits& limits, grpc::ServerBuilder* builder);
/// The same with a quota that others may share.
void ApplyTransportSettings(const grpc::ResourceQuota& quota, int64_t window, grpc::ServerBuilder* builder);

/// SETTINGS that allow a client no more than those of any server with these settings.
std::string Greeting();

/// How long a connection may take to begin HTTP/2, and be without a call. gRPC looks after both, because it
/// alone knows both of unix sockets too; a client is told before a connection without calls is closed
/// (GOAWAY).
void ApplyConnectionTimes(const ConnectionLimits& limits, grpc::ServerBuilder* builder);

/// Of `listeners` ("host:port", "unix:PATH") those that a client can be sent to. Nobody can dial a wildcard;
/// where there is one, clients of other machines come by it, and the remaining TCP listeners may be of this
/// machine alone: then none of them is named, and each client keeps to the address that it knows.
std::vector<std::string> DialledAddresses(const std::vector<std::string>& listeners);

/// How many completion queues, a thread each, serve what this process may use of the machine (affinity,
/// quota).
int DefaultQueues();

}  // namespace tilewire::rpc
