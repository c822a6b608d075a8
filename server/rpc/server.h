// The gRPC server: listeners, completion queues, services and health.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/array/status.h"
#include "server/base/timing.h"
#include "server/engine/engine.h"
#include "server/rpc/calls/observer.h"
#include "server/rpc/identity/credential_files.h"
#include "server/rpc/identity/identity.h"
#include "server/rpc/listener/connection_use.h"
#include "server/rpc/listener/limits.h"
#include "server/rpc/transport/receive_limits.h"

namespace tilewire::rpc {

struct ServerOptions {
  std::vector<std::string> listen;     ///< "host:port", "[v6]:port", "unix:PATH"; port 0 picks one
  std::vector<std::string> advertise;  ///< empty: the listeners
  ReceiveLimits receive;
  ConnectionLimits connections;
  UseLimits connection_use;  ///< what the calls of each TCP connection may take
  double idle_seconds = 30;
  double least_rate = 64 << 10;  ///< bytes a second that a job moves while others wait; 0: any
  Clock::duration late =
      std::chrono::milliseconds(20);  ///< unary calls may wait so long, if not longer; 0: any time
  bool reflection = false;
  std::string identity_header;                        ///< empty: off
  std::vector<Identity> trusted_proxies{Identity{}};  ///< whose identity_header counts
  bool anonymous = true;                              ///< whether callers without a name are let in
  /// With a certificate TCP speaks TLS; unix sockets are clear.
  CredentialPaths credentials;
  std::string health_listen;                  ///< health.h; empty: off
  bool client_certificates_required = false;  ///< else one may be shown, where credentials say whose
  std::string version;                        ///< what Describe says
  int queues = 0;  ///< completion queues, a thread each; 0: by the cores it may use
};

/// Serves an engine. Thread-safe. The engine and the observer outlive it.
class Server {
 public:
  /// Listens and serves. UNAVAILABLE, naming the address, when one cannot be bound.
  static Result<std::unique_ptr<Server>> Start(engine::Engine* engine, CallObserver* observer,
                                               const ServerOptions& options);
  /// Shuts down at once where that has not happened.
  virtual ~Server() = default;

  /// Where it listens, with the ports that were picked, in the order of the options.
  virtual const std::vector<std::string>& addresses() const = 0;
  /// Where it answers grpc.health.v1 alone, in clear; empty: nowhere.
  virtual std::string health_address() const = 0;
  /// grpc.health.v1 answers for "readiness" and "" (the whole server).
  virtual void SetReady(bool ready) = 0;
  /// grpc.health.v1 answer for "liveness".
  virtual void SetLive(bool live) = 0;
  /// From now on new jobs are UNAVAILABLE `DRAINING`; running calls go on.
  virtual void BeginDrain() = 0;
  /// Waits until no call is active; false when `until` came first.
  virtual bool WaitIdle(TimePoint until) = 0;
  /// When the last call came, refused ones included; long ago where none has. Thread-safe.
  virtual TimePoint last_arrival() const = 0;
  /// Drains, and ends everything: calls that still run at `until` are UNAVAILABLE `DRAINING`, then listeners
  /// and threads stop. Clients that do not take their status keep it for up to two seconds more.
  virtual void Shutdown(TimePoint until) = 0;
};

}  // namespace tilewire::rpc
