#include "server/rpc/server.h"

#include <grpc/grpc.h>

#include <utility>

#include "server/base/mutex.h"
#include "server/rpc/calls/context.h"
#include "server/rpc/calls/message_watch.h"
#include "server/rpc/grpc_servers.h"
#include "server/rpc/health.h"
#include "server/rpc/identity/tokens.h"
#include "server/rpc/listener/listener.h"
#include "server/rpc/policy_words.h"
#include "server/rpc/transport/grpc_reads.h"
#include "server/rpc/transport/self_probe.h"
#include "server/rpc/transport/tls_credentials.h"
#include "server/rpc/transport/transport.h"

namespace tilewire::rpc {
namespace {

class ServerImpl final : public Server {
 public:
  ServerImpl(engine::Engine* engine, CallObserver* observer, const ServerOptions& options)
      : options_(options), shared_(options.late) {
    shared_.engine = engine;
    shared_.observer = observer;
    shared_.drop_soon = [engine](std::shared_ptr<const void> hold) { engine->DropSoon(std::move(hold)); };
    shared_.version = options.version;
    shared_.identity_rules = {.header = options.identity_header,
                              .trusted_proxies = options.trusted_proxies,
                              .anonymous = options.anonymous};
    shared_.idle_seconds = options.idle_seconds;
    shared_.least_rate = options.least_rate;
    shared_.connection_use = options.connection_use;
  }
  ~ServerImpl() override { Shutdown(Clock::now()); }

  Status Listen();
  const std::vector<std::string>& addresses() const override { return listener_->addresses(); }
  std::string health_address() const override { return health_ ? health_->address() : ""; }
  void SetReady(bool ready) override {
    SetHealth("", ready);
    SetHealth("readiness", ready);
  }
  void SetLive(bool live) override { SetHealth("liveness", live); }
  void BeginDrain() override { shared_.running.BeginDrain(); }
  bool WaitIdle(TimePoint until) override { return shared_.running.WaitIdle(until); }
  TimePoint last_arrival() const override { return shared_.last_arrival; }
  void Shutdown(TimePoint until) override;

 private:
  void SetHealth(const char* service, bool serving) {
    if (servers_) servers_->SetHealth(service, serving);
    const MutexLock lock(health_mutex_);
    if (health_) health_->Set(service, serving);
  }
  void StartProbe();
  void LookAfter(TimePoint now);

  const ServerOptions options_;
  CallContext shared_;
  std::unique_ptr<MessageWatch> message_watch_;
  std::unique_ptr<GrpcServers> servers_;
  bool shut_down_ = false;
  Mutex health_mutex_;                    ///< health may be told while the server goes away
  std::unique_ptr<HealthServer> health_;  ///< null: only the other listeners answer
  ReadsRefused told_ = RefusedReads();    ///< by the listener's thread
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<SelfProbe> probe_;
};

Status ServerImpl::Listen() {
  // Kept for the life of the process: when the last user of gRPC 1.51 leaves, it joins a thread that may poll
  // for 10 s.
  static const bool kept = (grpc_init(), true);
  (void)kept;
  TILEWIRE_ASSIGN_OR_RETURN(
      shared_.credentials,
      CredentialFiles::Open(options_.credentials, WordsOfPolicies(),
                            [observer = shared_.observer](bool good, std::string_view text) {
                              good ? observer->OnNotice(text) : observer->OnWarning(text);
                            }));
  TILEWIRE_ASSIGN_OR_RETURN(listener_,
                            Listener::Open(options_.listen, options_.connections, shared_.observer));
  if (!options_.health_listen.empty()) {
    TILEWIRE_ASSIGN_OR_RETURN(health_, HealthServer::Open(options_.health_listen, shared_.observer));
  }
  shared_.endpoints = options_.advertise;
  if (options_.advertise.empty()) shared_.endpoints = DialledAddresses(addresses());
  shared_.probe_token = RandomHex(16);  // whoever knew it would be let in
  shared_.account_of = [this](const std::string& peer) { return listener_->AccountOf(peer); };
  shared_.count_unread = [this](TimePoint now) { return listener_->CountUnread(now); };
  const bool tls = shared_.credentials->has_tls();
  auto servers = GrpcServers::Start(
      &shared_, {.receive = options_.receive,
                 .connections = options_.connections,
                 .reflection = options_.reflection,
                 .queues = options_.queues,
                 .credentials = [this, tls]() -> std::shared_ptr<grpc::ServerCredentials> {
                   if (!tls) return nullptr;
                   return TlsCredentials(shared_.credentials.get(), options_.client_certificates_required);
                 }});
  if (!servers) return servers.error();
  servers_ = *std::move(servers);
  message_watch_ = std::make_unique<MessageWatch>(&shared_.running, &shared_.engine->timer(),
                                                  options_.idle_seconds, options_.least_rate);
  SetLive(true);
  SetReady(true);
  shared_.credentials->Start(
      [observer = shared_.observer](const CredentialState& state) { observer->OnCredentials(state); });
  // What is not clear cannot be asked how far away it is.
  listener_->Start(
      [this](FileDescriptor connection, Entrance by) { servers_->HandOver(std::move(connection), by); },
      {.wide_bytes = servers_->wide_places_bytes(), .greeting = tls ? "" : Greeting()},
      [this](TimePoint now) { LookAfter(now); });
  StartProbe();
  return {};
}

void ServerImpl::LookAfter(TimePoint now) {
  servers_->LookAfter(now);
  const ReadsRefused refused = RefusedReads();
  for (; told_.headers != refused.headers; ++told_.headers)
    shared_.observer->OnConnectionEnded(Ending::kHeader);
  for (; told_.streams != refused.streams; ++told_.streams)
    shared_.observer->OnConnectionEnded(Ending::kFailedCalls);
  for (; told_.messages != refused.messages; ++told_.messages) shared_.observer->OnMessageRefused();
}

void ServerImpl::StartProbe() {
  probe_ = std::make_unique<SelfProbe>(
      [this] { return listener_->DialAll(); }, shared_.probe_token,
      [this](bool live, const std::string& why) {
        SetLive(live);
        shared_.observer->OnWarning(live ? "the server answers its own calls again"
                                         : "not live: the server does not answer its own calls: " + why);
      });
}

void ServerImpl::Shutdown(TimePoint until) {
  if (!servers_ || shut_down_) return;
  shut_down_ = true;
  probe_.reset();
  // First, because gRPC would cut what still runs, and nobody could tell that from clients going away.
  shared_.running.EndAll(until);
  message_watch_.reset();
  // Before gRPC goes: it takes no connection any more, and would not close what it is handed.
  listener_->Stop();
  servers_->Shutdown();
  {
    const MutexLock lock(health_mutex_);
    health_.reset();
  }
  listener_->Drop();
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(engine::Engine* engine, CallObserver* observer,
                                              const ServerOptions& options) {
  auto server = std::make_unique<ServerImpl>(engine, observer, options);
  TILEWIRE_RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace tilewire::rpc
