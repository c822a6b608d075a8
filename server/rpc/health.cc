#include "server/rpc/health.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <utility>
#include <vector>

#include "server/rpc/transport/door.h"
#include "server/rpc/transport/transport.h"

namespace tilewire::rpc {
namespace {
constexpr int kMostConnections = 64;    // probes are few
constexpr int kMessageBytes = 4 << 10;  // the name of a service
}  // namespace

Result<std::unique_ptr<HealthServer>> HealthServer::Open(const std::string& address,
                                                         ConnectionObserver* observer) {
  std::unique_ptr<HealthServer> health(new HealthServer(observer));
  TILEWIRE_RETURN_IF_ERROR(health->Start(address));
  return health;
}

Status HealthServer::Start(const std::string& address) {
  const ConnectionLimits limits{.most = kMostConnections, .most_per_peer = kMostConnections};
  TILEWIRE_ASSIGN_OR_RETURN(listener_, Listener::Open({address}, limits, &quiet_));
  grpc::ServerBuilder builder;
  ApplyReflection(false, &builder);
  ApplyConnectionTimes(limits, &builder);
  builder.SetMaxReceiveMessageSize(kMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // else gRPC gives each stream 4 MiB and more
  health_.RegisterWith(&builder);
  std::vector<Door> doors;
  for (int i = 0; i < Entrance::kDoors; ++i)
    doors.push_back(MakeDoor(&builder, grpc::InsecureServerCredentials()));
  thread_ = std::make_unique<QueueThread>(builder.AddCompletionQueue());
  server_ = builder.BuildAndStart();
  if (!server_) return Status(Code::kInternal, "INTERNAL_ERROR", "gRPC could not start a server of health");
  thread_->Start();  // first: the end waits for those who accept, and they for it
  health_.Accept(thread_->queue());
  listener_->Start(
      [doors](FileDescriptor connection, Entrance by) {
        Enter(doors[static_cast<size_t>(by.door)], std::move(connection));
      },
      {}, [thread = thread_.get()](TimePoint now) { thread->LookAfter(now); });
  return {};
}

void HealthServer::Set(const std::string& service, bool serving) {
  health_.Set(service, serving);
}

HealthServer::~HealthServer() {
  if (!server_) return;
  listener_->Stop();  // before gRPC goes: it would not close what it is handed then
  server_->Shutdown(std::chrono::system_clock::now());
  {
    const QueueThread::Stay until_all_ended(thread_.get());
    health_.WaitIdle();
  }
  listener_->Drop();
  thread_.reset();
  server_.reset();
}

}  // namespace tilewire::rpc
