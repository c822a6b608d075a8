// gRPC's servers behind the one that clients see: one for near connections, one for those with wide windows
// (listener/window_class.h).
#pragma once

#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/rpc/calls/context.h"
#include "server/rpc/grpc_server.h"
#include "server/rpc/listener/arrivals.h"
#include "server/rpc/listener/file_descriptor.h"
#include "server/rpc/listener/limits.h"
#include "server/rpc/listener/window_class.h"
#include "server/rpc/transport/receive_limits.h"

namespace tilewire::rpc {

struct GrpcServersOptions {
  ReceiveLimits receive;
  ConnectionLimits connections;
  bool reflection = false;
  int queues = 0;  ///< of each; 0: as many as the process may use cores
  /// Makes those of connections from beyond, anew for each server: they remember what gRPC has been handed.
  /// Null: clear.
  std::function<std::shared_ptr<grpc::ServerCredentials>()> credentials;
};

/// Near connections have a server from the start; others when the first of them comes, so that who serves
/// nobody far away pays nothing. Both run the same calls. Near ones have --receive-quota; the others
/// --distance-bytes, so that those who are far take nothing from those who are near. Thread-safe.
class GrpcServers {
 public:
  /// `shared` outlives it. As GrpcServer::Start.
  static Result<std::unique_ptr<GrpcServers>> Start(CallContext* shared, const GrpcServersOptions& options);
  GrpcServers(const GrpcServers&) = delete;

  /// Where the server for wide windows cannot be had the near one takes it.
  void HandOver(FileDescriptor connection, Entrance by);
  /// What all places with wide windows may take together, so that each has room for a stream; 0: there are no
  /// classes.
  int64_t wide_places_bytes() const;
  /// Health of all. No-op after Shutdown.
  void SetHealth(const std::string& service, bool serving);
  /// As Crew::LookAfter, of all their threads. Not beside Shutdown.
  void LookAfter(TimePoint now);
  /// Ends all, and returns when nothing of them is left. Not beside HandOver.
  void Shutdown();

 private:
  GrpcServers(CallContext* shared, const GrpcServersOptions& options);
  enum Which : uint8_t { kNear, kWide, kServers };
  Status StartOne(Which which);
  GrpcServer* Of(Which which);
  /// Starts it where it is not there yet; null: it cannot be had.
  GrpcServer* OfWide();

  CallContext* const shared_;
  const GrpcServersOptions options_;
  const int queues_;  ///< of each; found at the start, when the files that say so may still be read
  grpc::ResourceQuota near_quota_{"tilewire"}, wide_quota_{"tilewire-distance"};
  ReceiveAccounts near_accounts_{"--receive-quota"}, wide_accounts_{"--distance-bytes"};
  std::array<std::unique_ptr<Receiving>, kServers> receiving_;
  Mutex start_mutex_;  ///< held while one is started
  Mutex mutex_;        ///< health may be told while servers come and go
  std::map<std::string, bool> health_ TILEWIRE_GUARDED_BY(mutex_);
  std::array<std::unique_ptr<GrpcServer>, kServers> servers_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire::rpc
