#include "server/rpc/transport/door.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/impl/server_builder_plugin.h>

#include <utility>
#include <vector>

namespace tilewire::rpc {
namespace {

class DropReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    std::erase_if(*plugins, [](const auto& plugin) { return plugin->name() == "proto_server_reflection"; });
  }
};

}  // namespace

Door MakeDoor(grpc::ServerBuilder* builder, std::shared_ptr<grpc::ServerCredentials> credentials) {
  return builder->experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, std::move(credentials));
}

void Enter(const Door& door, FileDescriptor connection) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.fd = connection.Release();
  door->HandleNewConnection(&parameters);
}

void ApplyReflection(bool reflection, grpc::ServerBuilder* builder) {
  // Linkers drop a library that nobody names, and with it the initialiser that would register the plugin.
  if (reflection) return grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  builder->SetOption(std::make_unique<DropReflection>());
}

}  // namespace tilewire::rpc
