// Transport settings of every Tilewire listener; the benchmarks' raw gRPC peers use the same.
#pragma once

#include <grpcpp/server_builder.h>

#include <cstdint>

namespace tilewire::rpc {

/// Message limits, receive quota (bytes), refused compression, connection limits.
void ApplyTransportSettings(int64_t receive_quota, grpc::ServerBuilder* builder);

/// How many completion queues, a thread each, serve this machine.
int DefaultQueues();

}  // namespace tilewire::rpc
