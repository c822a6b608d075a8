// grpc.health.v1 on a queue of ours. gRPC's own is made with its callback API, whose threads wait in the
// epoll set of all others, each in the way of every small call (crew.h).
#pragma once

#include <grpcpp/server_builder.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/base/mutex.h"
#include "server/rpc/transport/acceptors.h"
#include "server/rpc/transport/coroutine.h"

namespace tilewire::rpc {

/// What it answers of a service is what was set last; of others nothing is known. Thread-safe. Outlives the
/// server.
class HealthService {
 public:
  HealthService() = default;
  HealthService(const HealthService&) = delete;

  void RegisterWith(grpc::ServerBuilder* builder) { builder->RegisterService(&service_); }
  /// From now on calls are taken from that queue of the server, until it shuts down.
  void Accept(grpc::ServerCompletionQueue* queue);
  /// Tells those who watch the service, too.
  void Set(const std::string& service, bool serving);
  /// Returns when nothing asks for another call. After the server's shutdown.
  void WaitAccepted() { acceptors_.WaitEnded(); }
  /// Returns when no call is left, and none is asked for. After the server's shutdown, which ends them.
  void WaitIdle();

 private:
  using State = grpc::health::v1::HealthCheckResponse::ServingStatus;
  using Resume = std::function<void(std::optional<State>)>;
  struct CheckCall;
  class WatchCall;
  struct Watch {
    std::string service;
    std::shared_ptr<WatchCall> self;  ///< until gRPC says that the call is over
    bool over = false;
    Resume waiting;  ///< its coroutine, for another state
  };

  Detached AcceptCheck(grpc::ServerCompletionQueue* queue);
  Detached AcceptWatch(grpc::ServerCompletionQueue* queue);
  Detached Answer(std::unique_ptr<CheckCall> call);
  Detached Tell(std::shared_ptr<WatchCall> call);
  State StateOf(const std::string& service) const TILEWIRE_REQUIRES(mutex_);
  void Began();
  void Ended();

  grpc::health::v1::Health::AsyncService service_;
  Acceptors acceptors_;
  mutable Mutex mutex_;
  CondVar idle_;
  int calls_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  std::map<std::string, bool> serving_ TILEWIRE_GUARDED_BY(mutex_);
  std::map<const WatchCall*, Watch> watches_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire::rpc
