// Whether the server is well, told to probes that have neither certificate nor token.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <memory>
#include <string>

#include "kernels/array/status.h"
#include "server/rpc/listener/listener.h"

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
  /// Its connections are not counted with those of callers.
  class Quiet final : public ConnectionObserver {
   public:
    explicit Quiet(ConnectionObserver* told) : told_(told) {}
    void OnWarning(std::string_view text) override { told_->OnWarning(text); }

   private:
    ConnectionObserver* const told_;
  };

  explicit HealthServer(ConnectionObserver* observer) : quiet_(observer) {}
  Status Start(const std::string& address);

  Quiet quiet_;
  grpc::CallbackGenericService nobody_;  ///< all other methods: UNIMPLEMENTED
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tilewire::rpc
