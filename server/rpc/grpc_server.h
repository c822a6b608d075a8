// One of gRPC's servers, with services of its own. It listens nowhere: connections are handed to it.
#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/array/status.h"
#include "server/rpc/calls/context.h"
#include "server/rpc/listener/arrivals.h"
#include "server/rpc/listener/file_descriptor.h"
#include "server/rpc/listener/limits.h"
#include "server/rpc/services.h"
#include "server/rpc/transport/crew.h"
#include "server/rpc/transport/door.h"
#include "server/rpc/transport/queue_thread.h"

namespace tilewire::rpc {

struct GrpcServerOptions {
  int64_t window = 0;  ///< bytes that a stream may send unread; 0: each connection's, or by gRPC's probe
  const grpc::ResourceQuota* quota = nullptr;  ///< of messages that come in; servers may share it
  ConnectionLimits connections;
  bool reflection = false;
  int threads = 1;  ///< at most, of those who take calls and of those who serve streams, each
  std::shared_ptr<grpc::ServerCredentials> credentials;  ///< of connections from beyond; null: clear
};

/// Calls of several come on one queue and have one crew: two would be in each other's way (crew.h).
/// Thread-safe, but for Start and the end.
class GrpcServer {
 public:
  /// Serves calls of the connections that it is handed. `shared` and `receive` outlive it. `first`, if any,
  /// is a server whose queue of calls and crew it uses, and which ends before it does. INTERNAL where gRPC
  /// will not; throws std::system_error where the system has no threads.
  static Result<std::unique_ptr<GrpcServer>> Start(CallContext* shared, Receiving* receive,
                                                   const GrpcServerOptions& options, GrpcServer* first);
  /// Ends gRPC's server, which ends connections and calls. After it no connection is handed over.
  void Shutdown();
  /// Returns when no call comes any more. After Shutdown, of those that share its queue of calls, too: a
  /// connection of theirs could keep the threads that this needs.
  void WaitIdle();
  /// Ends its queues. After Shutdown, of those that share its queue of calls, too, and when no call is left
  /// that could start an operation.
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;

  /// Whoever is not from beyond is clear in any case.
  void HandOver(FileDescriptor connection, Entrance by);
  /// As Crew::LookAfter, of all its threads.
  void LookAfter(TimePoint now);
  /// grpc.health.v1 answers so for that service.
  void SetHealth(const std::string& service, bool serving);

 private:
  GrpcServer(CallContext* shared, Receiving* receive, GrpcServer* first)
      : services_(shared, receive), first_(first) {}
  /// Of all who share its queue of calls.
  Crew* crew() const { return first_ != nullptr ? first_->crew_.get() : crew_.get(); }

  Services services_;
  GrpcServer* const first_;  ///< whose queue of calls and crew it uses; null: it has both
  std::unique_ptr<grpc::ServerCompletionQueue> calls_;  ///< on which all calls come, and unary ones stay
  std::vector<std::unique_ptr<QueueThread>> streams_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Crew> crew_;
  std::vector<Door> clear_;  ///< by Entrance::door
  Door outer_;               ///< of those from beyond; null: these, too, come by clear ones
};

}  // namespace tilewire::rpc
