#include "server/rpc/grpc_server.h"

#include <chrono>
#include <utility>

#include "server/base/threads.h"
#include "server/rpc/transport/given_window.h"
#include "server/rpc/transport/shared_queue.h"
#include "server/rpc/transport/transport.h"

namespace tilewire::rpc {
namespace {

Crew::Options CrewFor(int cores) {
  const int together = SmallCallsAtOnce(cores);
  if (cores < kFewCores) return {.together = together};  // nobody waits awake
  return {.close = std::chrono::microseconds(400), .together = together, .in_a_row = 16};
}

}  // namespace

Result<std::unique_ptr<GrpcServer>> GrpcServer::Start(CallContext* shared, Receiving* receive,
                                                      const GrpcServerOptions& options, GrpcServer* first) {
  std::unique_ptr<GrpcServer> made(new GrpcServer(shared, receive, first));
  grpc::ServerBuilder builder;
  ApplyReflection(options.reflection, &builder);
  ApplyTransportSettings(*options.quota, options.window, &builder);
  ApplyConnectionTimes(options.connections, &builder);
  made->services_.RegisterWith(&builder);
  for (int i = 0; i < Entrance::kDoors; ++i)
    made->clear_.push_back(MakeDoor(&builder, grpc::InsecureServerCredentials()));
  // One is enough: hands are shaken elsewhere, and only then is anything read that a client decides.
  if (options.credentials) made->outer_ = MakeDoor(&builder, options.credentials);
  if (first == nullptr) made->calls_ = builder.AddCompletionQueue();
  for (int i = 0; i < options.threads; ++i)
    made->streams_.push_back(std::make_unique<QueueThread>(builder.AddCompletionQueue()));
  {
    const SharedQueue calls(first != nullptr ? first->calls_.get() : nullptr);
    made->server_ = builder.BuildAndStart();
  }
  if (!made->server_) return Fail(Status(Code::kInternal, "INTERNAL_ERROR", "gRPC could not start a server"));
  made->services_.Accept(first != nullptr ? first->calls_.get() : made->calls_.get(), made->streams_);
  try {
    if (first == nullptr) {
      made->crew_ = std::make_unique<Crew>(made->calls_.get(), CrewFor(options.threads));
      made->crew_->Start(options.threads);
    }
    for (const auto& streams : made->streams_) streams->Start();
  } catch (...) {
    made->Shutdown();
    made->WaitIdle();
    throw;
  }
  return made;
}

void GrpcServer::HandOver(FileDescriptor connection, Entrance by) {
  const GivenWindow given(by.window);
  Enter(by.beyond && outer_ ? outer_ : clear_[static_cast<size_t>(by.door)], std::move(connection));
}

void GrpcServer::LookAfter(TimePoint now) {
  if (crew_) crew_->LookAfter(now);
  for (const auto& streams : streams_) streams->LookAfter(now);
}

void GrpcServer::SetHealth(const std::string& service, bool serving) {
  services_.SetHealth(service, serving);
}

void GrpcServer::Shutdown() {
  server_->Shutdown(std::chrono::system_clock::now());
}

void GrpcServer::WaitIdle() {
  // Else its queue is served by its destructor alone, and nothing must be waited for before.
  if (crew() == nullptr || !crew()->has_threads()) return;
  services_.WaitAccepted();
  services_.WaitIdle();
}

GrpcServer::~GrpcServer() {
  if (first_ != nullptr) return;
  calls_->Shutdown();
  if (!crew_) crew_ = std::make_unique<Crew>(calls_.get());
  crew_.reset();
}

}  // namespace tilewire::rpc
