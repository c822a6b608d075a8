#include "server/rpc/transport/shared_queue.h"

#include <grpc/grpc.h>
#include <grpcpp/server.h>

namespace tilewire::rpc {
namespace {

thread_local grpc::ServerCompletionQueue* shared = nullptr;

class Callbacks final : public grpc::Server::GlobalCallbacks {
  void PreSynchronousRequest(grpc::ServerContext*) override {}
  void PostSynchronousRequest(grpc::ServerContext*) override {}
  void PreServerStart(grpc::Server* server) override {
    if (shared != nullptr) grpc_server_register_completion_queue(server->c_server(), shared->cq(), nullptr);
  }
};

// Before main, since gRPC takes them once, and only before the first server is made. It deletes them.
[[maybe_unused]] const bool kTold = [] {
  grpc::Server::SetGlobalCallbacks(new Callbacks);
  return true;
}();

}  // namespace

SharedQueue::SharedQueue(grpc::ServerCompletionQueue* queue) {
  shared = queue;
}

SharedQueue::~SharedQueue() {
  shared = nullptr;
}

}  // namespace tilewire::rpc
