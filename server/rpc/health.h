// Whether the server is well, told to probes that have neither certificate nor token.
#pragma once

#include <grpcpp/server.h>

#include <memory>
#include <string>

#include "kernels/array/status.h"
#include "server/rpc/listener/listener.h"
#include "server/rpc/transport/health_service.h"
#include "server/rpc/transport/queue_thread.h"

namespace tilewire::rpc {

/// Answers grpc.health.v1 and nothing else, always in clear, to whoever reaches its address: identities, TLS
/// and the limits of the other listeners do not touch it, and it has nothing to give but a word. Thread-safe.
class HealthServer {
 public:
  /// Listens and answers; every service is unknown until it is set. UNAVAILABLE where the address cannot be
  /// bound. `observer` outlives it.
  static Result<std::unique_ptr<HealthServer>> Open(const std::string& address, ConnectionObserver* observer);
  ~HealthServer();
  HealthServer(const HealthServer&) = delete;

  /// With the port that was picked.
  const std::string& address() const { return listener_->addresses().front(); }
  void Set(const std::string& service, bool serving);

 private:
  /// Its connections are not counted with those of callers. The thread is needed as long as there are any.
  class Quiet final : public ConnectionObserver {
   public:
    Quiet(ConnectionObserver* told, const std::unique_ptr<QueueThread>* thread)
        : told_(told), thread_(thread) {}
    void OnConnectionOpened() override { (*thread_)->Enter(); }
    void OnConnectionClosed() override { (*thread_)->Leave(); }
    void OnWarning(std::string_view text) override { told_->OnWarning(text); }

   private:
    ConnectionObserver* const told_;
    const std::unique_ptr<QueueThread>* const thread_;
  };

  explicit HealthServer(ConnectionObserver* observer) : quiet_(observer, &thread_) {}
  Status Start(const std::string& address);

  Quiet quiet_;
  HealthService health_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<QueueThread> thread_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tilewire::rpc
