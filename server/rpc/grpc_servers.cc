#include "server/rpc/grpc_servers.h"

#include <system_error>
#include <utility>
#include <vector>

#include "server/base/timing.h"
#include "server/rpc/transport/transport.h"

namespace tilewire::rpc {

GrpcServers::GrpcServers(CallContext* shared, const GrpcServersOptions& options)
    : shared_(shared), options_(options) {
  near_quota_.Resize(static_cast<size_t>(options.receive.quota));
  near_accounts_.SetLimits(options.receive.quota);
  if (options.receive.distance_bytes > 0)
    wide_quota_.Resize(static_cast<size_t>(options.receive.distance_bytes));
  wide_accounts_.SetLimits(options.receive.distance_bytes);
}

Result<std::unique_ptr<GrpcServers>> GrpcServers::Start(CallContext* shared,
                                                        const GrpcServersOptions& options) {
  std::unique_ptr<GrpcServers> servers(new GrpcServers(shared, options));
  TILEWIRE_RETURN_IF_ERROR(servers->StartOne(WindowClass::kNear));
  return servers;
}

int64_t GrpcServers::wide_places_bytes() const {
  return ReceiveAccounts::StreamBytes(options_.receive.distance_bytes);
}

Status GrpcServers::StartOne(WindowClass window) {
  const auto i = static_cast<size_t>(window);
  const bool is_near = window == WindowClass::kNear;
  // What a wide window is counted as; how wide it is its probe decides.
  const int64_t bytes = is_near ? options_.receive.window : kWideWindowBytes[i];
  receiving_[i] = std::make_unique<Receiving>(Receiving{
      .window = bytes, .shared = !is_near, .accounts = is_near ? &near_accounts_ : &wide_accounts_});
  auto server = GrpcServer::Start(shared_, receiving_[i].get(),
                                  {.window = is_near ? bytes : 0,
                                   .quota = is_near ? &near_quota_ : &wide_quota_,
                                   .connections = options_.connections,
                                   .reflection = options_.reflection,
                                   .threads = options_.queues > 0 ? options_.queues : DefaultQueues(),
                                   .credentials = options_.credentials()});
  if (!server) return server.error();
  const MutexLock lock(mutex_);
  for (const auto& [service, serving] : health_) (*server)->SetHealth(service, serving);
  servers_[i] = *std::move(server);
  return {};
}

GrpcServer* GrpcServers::Of(WindowClass window) {
  const MutexLock lock(mutex_);
  return servers_[static_cast<size_t>(window)].get();
}

void GrpcServers::HandOver(FileDescriptor connection, Entrance by) {
  GrpcServer* server = Of(by.window);
  if (server == nullptr) {
    try {
      const Status started = StartOne(by.window);
      if (!started.ok()) shared_->observer->OnWarning(started.message());
    } catch (const std::system_error& e) {
      shared_->observer->OnWarning(std::string("no threads for connections from afar: ") + e.what());
    }
    server = Of(by.window);
  }
  if (server == nullptr) server = Of(WindowClass::kNear);
  server->HandOver(std::move(connection), by.beyond);
}

void GrpcServers::SetHealth(const std::string& service, bool serving) {
  const MutexLock lock(mutex_);
  health_[service] = serving;
  for (const auto& server : servers_)
    if (server) server->SetHealth(service, serving);
}

void GrpcServers::Shutdown() {
  for (int i = 0; i < kWindowClasses; ++i)
    if (GrpcServer* server = Of(static_cast<WindowClass>(i))) server->Shutdown();
  // Cancelled calls end by themselves, but a queue must not be shut down while one may still start an
  // operation.
  shared_->running.WaitIdle(TimePoint::max());
  std::array<std::unique_ptr<GrpcServer>, kWindowClasses> gone;
  {
    const MutexLock lock(mutex_);
    gone.swap(servers_);
  }
}

}  // namespace tilewire::rpc
