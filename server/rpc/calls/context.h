// What the calls of a server share.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/engine.h"
#include "server/rpc/calls/backlog.h"
#include "server/rpc/calls/observer.h"
#include "server/rpc/calls/own_streams.h"
#include "server/rpc/calls/running.h"
#include "server/rpc/calls/throttle.h"
#include "server/rpc/identity/credential_files.h"
#include "server/rpc/identity/rules.h"
#include "server/rpc/listener/account.h"
#include "server/rpc/listener/unread.h"
#include "server/rpc/transport/slices.h"

namespace tilewire::rpc {

/// Light calls that may come at once, from as many callers who each wait for their answer; and what
/// `late` is divided by for them: by the time that all of it has passed, thousands have come.
inline constexpr double kLightCrowd = 256;
inline constexpr int kLightLate = 4;

/// Outlives the calls.
struct CallContext {
  /// As Backlog and Throttle.
  explicit CallContext(Clock::duration late)
      : backlog(late), throttles{{Throttle(late / kLightLate, kLightCrowd), Throttle(late, 0)}} {}

  engine::Engine* engine = nullptr;
  CallObserver* observer = nullptr;
  std::string version;      ///< of the server, for Describe
  std::string probe_token;  ///< marks the server's own calls
  IdentityRules identity_rules;
  std::unique_ptr<CredentialFiles> credentials;  ///< not null while calls come
  double idle_seconds = 30;
  double least_rate = 0;              ///< bytes a second of each job, while others wait; 0: any
  Backlog backlog;                    ///< of unary calls
  std::array<Throttle, 2> throttles;  ///< of them, too: by Weight
  const std::array<std::shared_ptr<Turn>, 2> turns{
      std::make_shared<Turn>(), std::make_shared<Turn>()};  ///< of connections that nobody knows (Throttle)
  std::vector<std::string> endpoints;
  std::atomic<TimePoint> last_arrival{TimePoint{}};
  /// Of the connection of a peer (ServerContext::peer()); null where nobody knows it. Thread-safe.
  std::function<std::shared_ptr<ConnectionAccount>(const std::string& peer)> account_of;
  std::function<Unread(TimePoint now)> count_unread;  ///< not null while calls come. Thread-safe
  UseLimits connection_use;                           ///< of each connection that is known
  DropSoon drop_soon;                                 ///< Engine::DropSoon
  RunningCalls running;
  OwnStreams streams;
};

}  // namespace tilewire::rpc
