#include "server/rpc/grpc_servers.h"

#include <grpcpp/grpcpp.h>

#include <system_error>
#include <utility>
#include <vector>

#include "server/base/timing.h"
#include "server/rpc/listener/read_accounts.h"
#include "server/rpc/transport/given_window.h"
#include "server/rpc/transport/grpc_reads.h"
#include "server/rpc/transport/transport.h"

namespace tilewire::rpc {

GrpcServers::GrpcServers(CallContext* shared, const GrpcServersOptions& options)
    : shared_(shared), options_(options), queues_(options.queues > 0 ? options.queues : DefaultQueues()) {
  near_quota_.Resize(static_cast<size_t>(options.receive.quota));
  near_accounts_.SetLimits(options.receive.quota);
  if (options.receive.distance_bytes > 0)
    wide_quota_.Resize(static_cast<size_t>(options.receive.distance_bytes));
  wide_accounts_.SetLimits(options.receive.distance_bytes);
}

Result<std::unique_ptr<GrpcServers>> GrpcServers::Start(CallContext* shared,
                                                        const GrpcServersOptions& options) {
  std::unique_ptr<GrpcServers> servers(new GrpcServers(shared, options));
  if (options.receive.distance_bytes > 0 && !GiveWindows())
    shared->observer->OnWarning("windows of connections from afar are left to the probe of gRPC " +
                                grpc::Version() + ": only 1.51, as a shared library, takes ours");
  ReadAccounts::OfProcess().SetAsked(SeesReads());
  const ReceiveLimits& receive = options.receive;
  LimitMessagesOnWay(MessagesOnWayBytes(receive.quota), WideMessagesOnWayBytes(receive));
  if (!SeesReads() || !SeesMessages())
    shared->observer->OnWarning(
        "headers without an end, streams that are reset at once, and messages in pieces are read as gRPC " +
        grpc::Version() + " does: only Debian's 1.51, as a shared library, is bounded");
  TILEWIRE_RETURN_IF_ERROR(servers->StartOne(kNear));
  return servers;
}

int64_t GrpcServers::wide_places_bytes() const {
  return ReceiveAccounts::StreamBytes(options_.receive.distance_bytes);
}

Status GrpcServers::StartOne(Which which) {
  const bool wide = which == kWide;
  receiving_[which] =
      std::make_unique<Receiving>(Receiving{.window = wide ? kMostWideBytes : options_.receive.window,
                                            .wide = wide,
                                            .accounts = wide ? &wide_accounts_ : &near_accounts_});
  auto server = GrpcServer::Start(shared_, receiving_[which].get(),
                                  {.window = wide ? 0 : options_.receive.window,
                                   .quota = wide ? &wide_quota_ : &near_quota_,
                                   .connections = options_.connections,
                                   .reflection = options_.reflection,
                                   .threads = queues_,
                                   .credentials = options_.credentials()},
                                  wide ? Of(kNear) : nullptr);
  if (!server) return server.error();
  const MutexLock lock(mutex_);
  for (const auto& [service, serving] : health_) (*server)->SetHealth(service, serving);
  servers_[which] = *std::move(server);
  return {};
}

GrpcServer* GrpcServers::Of(Which which) {
  const MutexLock lock(mutex_);
  return servers_[which].get();
}

void GrpcServers::HandOver(FileDescriptor connection, Entrance by) {
  const Which which = by.window > 0 ? kWide : kNear;
  GrpcServer* server = Of(which);
  if (server == nullptr) server = OfWide();
  if (server == nullptr) server = Of(kNear);
  server->HandOver(std::move(connection), by);
}

GrpcServer* GrpcServers::OfWide() {
  const MutexLock one_starts_it(start_mutex_);
  if (GrpcServer* started = Of(kWide)) return started;
  try {
    const Status started = StartOne(kWide);
    if (!started.ok()) shared_->observer->OnWarning(started.message());
  } catch (const std::system_error& e) {
    shared_->observer->OnWarning(std::string("no threads for connections from afar: ") + e.what());
  }
  return Of(kWide);
}

void GrpcServers::LookAfter(TimePoint now) {
  for (const Which which : {kNear, kWide})
    if (GrpcServer* server = Of(which)) server->LookAfter(now);
}

void GrpcServers::SetHealth(const std::string& service, bool serving) {
  const MutexLock lock(mutex_);
  health_[service] = serving;
  for (const auto& server : servers_)
    if (server) server->SetHealth(service, serving);
}

void GrpcServers::Shutdown() {
  for (const Which which : {kNear, kWide})
    if (GrpcServer* server = Of(which)) server->Shutdown();
  for (const Which which : {kNear, kWide})
    if (GrpcServer* server = Of(which)) server->WaitIdle();
  // Cancelled calls end by themselves, but a queue must not be shut down while one may still start an
  // operation.
  shared_->running.WaitIdle(TimePoint::max());
  std::array<std::unique_ptr<GrpcServer>, kServers> gone;
  {
    const MutexLock lock(mutex_);
    gone.swap(servers_);
  }
  // First, with the queue on which all calls came: nothing of the other is left on it afterwards.
  gone[kNear].reset();
}

}  // namespace tilewire::rpc
