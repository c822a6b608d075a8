#include "tests/bench/callback_sink.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>

namespace tilewire::bench {
namespace {

/// One call. gRPC calls one method at a time.
class TakesAll : public grpc::ServerGenericBidiReactor {
 public:
  explicit TakesAll(Pool* pool) : pool_(pool) { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    if (!ok) {
      StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
      return;
    }
    pool_->Copy(message_);
    message_.Clear();
    StartRead(&message_);
  }
  void OnDone() override { delete this; }

 private:
  Pool* const pool_;
  grpc::ByteBuffer message_;
  const grpc::Slice empty_{"answer"};
  grpc::ByteBuffer answer_{&empty_, 1};
};

class SinkService : public grpc::CallbackGenericService {
 public:
  explicit SinkService(Pool* pool) : pool_(pool) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new TakesAll(pool_);
  }

 private:
  Pool* const pool_;
};

}  // namespace

std::string ListensAt(const std::string& listen, int port) {
  return listen.starts_with("unix:") ? listen : "localhost:" + std::to_string(port);
}

struct CallbackSink::Impl {
  Impl(Pool* pool, const std::string& listen) : service(pool) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.RegisterCallbackGenericService(&service);
    int port = 0;
    builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
    server = builder.BuildAndStart();
    address = ListensAt(listen, port);
  }

  SinkService service;
  std::unique_ptr<grpc::Server> server;
  std::string address;
};

CallbackSink::CallbackSink(Pool* pool, const std::string& listen)
    : impl_(std::make_unique<Impl>(pool, listen)) {}
CallbackSink::~CallbackSink() {
  impl_->server->Shutdown(std::chrono::system_clock::now());
}
std::string CallbackSink::address() const {
  return impl_->address;
}

}  // namespace tilewire::bench
