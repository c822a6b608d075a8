#include "server/rpc/grpc_server.h"

#include <grpcpp/health_check_service_interface.h>

#include <chrono>
#include <utility>

#include "server/rpc/transport/awaited.h"
#include "server/rpc/transport/given_window.h"
#include "server/rpc/transport/transport.h"

namespace tilewire::rpc {
Result<std::unique_ptr<GrpcServer>> GrpcServer::Start(CallContext* shared, Receiving* receive,
                                                      const GrpcServerOptions& options) {
  std::unique_ptr<GrpcServer> made(new GrpcServer(shared, receive));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  ApplyReflection(options.reflection, &builder);
  ApplyTransportSettings(*options.quota, options.window, &builder);
  ApplyConnectionTimes(options.connections, &builder);
  made->services_.RegisterWith(&builder);
  made->clear_ = MakeDoor(&builder, grpc::InsecureServerCredentials());
  made->outer_ = options.credentials ? MakeDoor(&builder, options.credentials) : made->clear_;
  for (int i = 0; i < options.queues; ++i) made->queues_.push_back(builder.AddCompletionQueue());
  made->server_ = builder.BuildAndStart();
  if (!made->server_) return Fail(Status(Code::kInternal, "INTERNAL_ERROR", "gRPC could not start a server"));
  for (auto& queue : made->queues_) made->services_.Accept(queue.get());
  try {
    for (auto& queue : made->queues_) made->threads_.emplace_back([q = queue.get()] { ServeJobs(q); });
  } catch (...) {
    made->Shutdown();
    throw;
  }
  return made;
}

void GrpcServer::HandOver(FileDescriptor connection, bool beyond, int64_t window) {
  const GivenWindow given(window);
  Enter(beyond ? outer_ : clear_, std::move(connection));
}

void GrpcServer::SetHealth(const std::string& service, bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(service, serving);
}

void GrpcServer::Shutdown() {
  server_->Shutdown(std::chrono::system_clock::now());
}

GrpcServer::~GrpcServer() {
  for (auto& queue : queues_) queue->Shutdown();
  for (auto& thread : threads_) thread.join();
  // Where threads could not be made for all.
  for (size_t i = threads_.size(); i < queues_.size(); ++i) ServeJobs(queues_[i].get());
}

}  // namespace tilewire::rpc
