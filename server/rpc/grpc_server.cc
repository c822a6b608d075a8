#include "server/rpc/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/impl/server_builder_plugin.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/rpc/transport/awaited.h"
#include "server/rpc/transport/transport.h"

namespace tilewire::rpc {
namespace {

/// Linking the reflection library registers it with every server; it is off unless asked for.
class DropReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    std::erase_if(*plugins, [](const auto& plugin) { return plugin->name() == "proto_server_reflection"; });
  }
};

}  // namespace

Result<std::unique_ptr<GrpcServer>> GrpcServer::Start(CallContext* shared, Receiving* receive,
                                                      const GrpcServerOptions& options) {
  std::unique_ptr<GrpcServer> made(new GrpcServer(shared, receive));
  grpc::EnableDefaultHealthCheckService(true);
  // Linkers drop a library that nobody names, and with it the initialiser that would register the plugin.
  if (options.reflection) grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  if (!options.reflection) builder.SetOption(std::make_unique<DropReflection>());
  ApplyTransportSettings(*options.quota, options.window, &builder);
  ApplyConnectionTimes(options.connections, &builder);
  made->services_.RegisterWith(&builder);
  made->door_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, options.credentials);
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

void GrpcServer::HandOver(FileDescriptor connection) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.fd = connection.Release();  // gRPC closes it
  door_->HandleNewConnection(&parameters);
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
