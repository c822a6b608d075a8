#include "server/rpc/server.h"

#include <grpc/grpc.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <thread>

#include "server/base/mutex.h"
#include "server/rpc/calls/arrays.h"
#include "server/rpc/calls/execute.h"
#include "server/rpc/calls/regions.h"
#include "server/rpc/calls/unary.h"
#include "server/rpc/calls/unknown.h"
#include "server/rpc/health.h"
#include "server/rpc/identity/tokens.h"
#include "server/rpc/listener/listener.h"
#include "server/rpc/transport/awaited.h"
#include "server/rpc/transport/door.h"
#include "server/rpc/transport/self_probe.h"
#include "server/rpc/transport/tls_credentials.h"
#include "server/rpc/transport/transport.h"
#include "tilewire/v1/arrays.grpc.pb.h"
#include "tilewire/v1/device.grpc.pb.h"
#include "tilewire/v1/kernels.grpc.pb.h"
#include "tilewire/v1/regions.grpc.pb.h"

namespace tilewire::rpc {
namespace {

using KernelsService = v1::Kernels::WithRawMethod_Rmse<
    v1::Kernels::WithRawMethod_Transpose<v1::Kernels::WithRawMethod_GaussianPdf<
        v1::Kernels::WithRawMethod_Compute<v1::Kernels::WithRawMethod_Execute<v1::Kernels::Service>>>>>;
using ArraysService =
    v1::Arrays::WithRawMethod_Put<v1::Arrays::WithRawMethod_Get<v1::Arrays::WithRawMethod_Stat<
        v1::Arrays::WithRawMethod_List<v1::Arrays::WithRawMethod_Delete<v1::Arrays::Service>>>>>;
using RegionsService = v1::Regions::WithRawMethod_Register<
    v1::Regions::WithRawMethod_Unregister<v1::Regions::WithRawMethod_List<v1::Regions::Service>>>;
using DeviceService = v1::Device::WithRawMethod_Describe<v1::Device::WithRawMethod_DescribeKernels<
    v1::Device::WithRawMethod_MeasureCeilings<v1::Device::Service>>>;

// Requests asked for in advance, a method and queue: a burst finds somebody waiting.
constexpr int kAccepts = 4;

class ServerImpl final : public Server {
 public:
  ServerImpl(engine::Engine* engine, CallObserver* observer, const ServerOptions& options)
      : options_(options) {
    shared_.engine = engine;
    shared_.observer = observer;
    shared_.drop_soon = [engine](std::shared_ptr<const void> hold) { engine->DropSoon(std::move(hold)); };
    shared_.version = options.version;
    shared_.identity_rules = {.header = options.identity_header,
                              .trusted_proxies = options.trusted_proxies,
                              .anonymous = options.anonymous};
    shared_.idle_seconds = options.idle_seconds;
    shared_.receive_window = options.receive.window;
    // Unary messages are here before anybody can refuse them, so streams leave them room.
    shared_.streams.SetLimit(options.receive.quota / 64 * 45);
    shared_.ahead.SetLimit(options.receive.quota / 64 * 3);  // of its own, so that it takes no stream's place
    shared_.unary.SetLimit(options.receive.quota / 4);
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
    MutexLock lock(health_mutex_);
    if (server_) server_->GetHealthCheckService()->SetServingStatus(service, serving);
    if (health_) health_->Set(service, serving);
  }
  void StartProbe();
  void Accept(grpc::ServerCompletionQueue* queue);
  template <typename Request>
  Detached AcceptUnary(std::string method, grpc::ServerCompletionQueue* queue, Request request,
                       UnaryHandler handler);
  /// `make()` gives a new call, `request(call, tag)` asks for one.
  template <typename Make, typename Request>
  Detached AcceptStream(Make make, Request request);
  void AcceptStreams(grpc::ServerCompletionQueue* queue);
  void AcceptArrays(grpc::ServerCompletionQueue* queue);
  void AcceptRegions(grpc::ServerCompletionQueue* queue);

  const ServerOptions options_;
  CallContext shared_;
  KernelsService kernels_;
  ArraysService arrays_;
  RegionsService regions_;
  DeviceService device_;
  UnknownMethods unknown_{&shared_};
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  Mutex health_mutex_;  ///< health may be told while the server goes away
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<HealthServer> health_;  ///< null: only the other listeners answer
  std::unique_ptr<Listener> listener_;
  std::vector<std::thread> threads_;
  std::unique_ptr<SelfProbe> probe_;
};

Status ServerImpl::Listen() {
  // Kept for the life of the process: when the last user of gRPC 1.51 leaves, it joins a thread that may poll
  // for 10 s.
  static const bool kept = (grpc_init(), true);
  (void)kept;
  TILEWIRE_ASSIGN_OR_RETURN(
      shared_.credentials, CredentialFiles::Open(options_.credentials, [observer = shared_.observer](
                                                                           bool good, std::string_view text) {
        good ? observer->OnNotice(text) : observer->OnWarning(text);
      }));
  TILEWIRE_ASSIGN_OR_RETURN(listener_,
                            Listener::Open(options_.listen, options_.connections, shared_.observer));
  if (!options_.health_listen.empty()) {
    TILEWIRE_ASSIGN_OR_RETURN(health_, HealthServer::Open(options_.health_listen, shared_.observer));
  }
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  ApplyReflection(options_.reflection, &builder);
  ApplyTransportSettings(options_.receive, &builder);
  ApplyConnectionTimes(options_.connections, &builder);
  builder.RegisterService(&kernels_);
  builder.RegisterService(&arrays_);
  builder.RegisterService(&regions_);
  builder.RegisterService(&device_);
  builder.RegisterCallbackGenericService(&unknown_);
  const Door clear = MakeDoor(&builder, grpc::InsecureServerCredentials());
  const Door outer = shared_.credentials->has_tls()
                         ? MakeDoor(&builder, TlsCredentials(shared_.credentials.get(),
                                                             options_.client_certificates_required))
                         : clear;
  const int queues = options_.queues > 0 ? options_.queues : DefaultQueues();
  for (int i = 0; i < queues; ++i) queues_.push_back(builder.AddCompletionQueue());
  server_ = builder.BuildAndStart();
  if (!server_) return Status(Code::kInternal, "INTERNAL_ERROR", "gRPC could not start a server");
  shared_.endpoints = options_.advertise;
  if (options_.advertise.empty()) shared_.endpoints = DialledAddresses(addresses());
  shared_.probe_token = RandomHex(16);  // whoever knew it would be let in
  shared_.account_of = [this](const std::string& peer) { return listener_->AccountOf(peer); };
  for (auto& queue : queues_) Accept(queue.get());
  for (auto& queue : queues_) threads_.emplace_back([q = queue.get()] { ServeJobs(q); });
  SetLive(true);
  SetReady(true);
  shared_.credentials->Start();
  listener_->Start([clear, outer](FileDescriptor connection, bool beyond) {
    Enter(beyond ? outer : clear, std::move(connection));
  });
  StartProbe();
  return {};
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

void ServerImpl::Accept(grpc::ServerCompletionQueue* queue) {
  for (int i = 0; i < kAccepts; ++i) {
    AcceptUnary(
        "Kernels.Rmse", queue, [this](auto... arguments) { kernels_.RequestRmse(arguments...); }, &ServeRmse);
    AcceptUnary(
        "Kernels.Transpose", queue, [this](auto... arguments) { kernels_.RequestTranspose(arguments...); },
        &ServeTranspose);
    AcceptUnary(
        "Kernels.GaussianPdf", queue,
        [this](auto... arguments) { kernels_.RequestGaussianPdf(arguments...); }, &ServeGaussianPdf);
    AcceptUnary(
        "Kernels.Compute", queue, [this](auto... arguments) { kernels_.RequestCompute(arguments...); },
        &ServeCompute);
    AcceptStreams(queue);
  }
  AcceptArrays(queue);
  AcceptRegions(queue);
  AcceptUnary(
      "Device.Describe", queue, [this](auto... arguments) { device_.RequestDescribe(arguments...); },
      &ServeDescribe);
  AcceptUnary(
      "Device.DescribeKernels", queue,
      [this](auto... arguments) { device_.RequestDescribeKernels(arguments...); }, &ServeDescribeKernels);
  AcceptUnary(
      "Device.MeasureCeilings", queue,
      [this](auto... arguments) { device_.RequestMeasureCeilings(arguments...); }, &ServeMeasureCeilings);
}

template <typename Request>
Detached ServerImpl::AcceptUnary(std::string method, grpc::ServerCompletionQueue* queue, Request request,
                                 UnaryHandler handler) {
  for (;;) {
    auto call = std::make_shared<UnaryCall>(&shared_, method, queue);
    call->WatchDone();
    const bool ok = co_await Operation(
        [&](void* tag) { request(&call->context(), &call->request, &call->responder, queue, queue, tag); });
    if (!ok) co_return;  // shutting down
    call->Started();
    RunUnary(std::move(call), handler);
  }
}

template <typename Make, typename Request>
Detached ServerImpl::AcceptStream(Make make, Request request) {
  for (;;) {
    auto call = make();
    call->WatchDone();
    const bool ok = co_await Operation([&](void* tag) { request(*call, tag); });
    if (!ok) co_return;
    call->Started();
    RunStream(std::move(call));
  }
}

void ServerImpl::AcceptStreams(grpc::ServerCompletionQueue* queue) {
  AcceptStream([=, this] { return std::make_shared<ExecuteCall>(&shared_, "Kernels.Execute", queue, false); },
               [=, this](ExecuteCall& call, void* tag) {
                 kernels_.RequestExecute(&call.context(), &call.stream, queue, queue, tag);
               });
  AcceptStream([=, this] { return std::make_shared<ExecuteCall>(&shared_, "Arrays.Put", queue, true); },
               [=, this](ExecuteCall& call, void* tag) {
                 arrays_.RequestPut(&call.context(), &call.stream, queue, queue, tag);
               });
  AcceptStream([=, this] { return std::make_shared<GetCall>(&shared_, "Arrays.Get", queue); },
               [=, this](GetCall& call, void* tag) {
                 arrays_.RequestGet(&call.context(), &call.request, &call.writer, queue, queue, tag);
               });
}

void ServerImpl::AcceptArrays(grpc::ServerCompletionQueue* queue) {
  AcceptUnary(
      "Arrays.Stat", queue, [this](auto... arguments) { arrays_.RequestStat(arguments...); }, &ServeStat);
  AcceptUnary(
      "Arrays.List", queue, [this](auto... arguments) { arrays_.RequestList(arguments...); }, &ServeList);
  AcceptUnary(
      "Arrays.Delete", queue, [this](auto... arguments) { arrays_.RequestDelete(arguments...); },
      &ServeDelete);
}

void ServerImpl::AcceptRegions(grpc::ServerCompletionQueue* queue) {
  AcceptUnary(
      "Regions.Register", queue, [this](auto... arguments) { regions_.RequestRegister(arguments...); },
      &ServeRegister);
  AcceptUnary(
      "Regions.Unregister", queue, [this](auto... arguments) { regions_.RequestUnregister(arguments...); },
      &ServeUnregister);
  AcceptUnary(
      "Regions.List", queue, [this](auto... arguments) { regions_.RequestList(arguments...); },
      &ServeListRegions);
}

void ServerImpl::Shutdown(TimePoint until) {
  if (!server_) return;
  probe_.reset();
  // First, because gRPC would cut what still runs, and nobody could tell that from clients going away.
  shared_.running.EndAll(until);
  // Before gRPC goes: it takes no connection any more, and would not close what it is handed.
  listener_->Stop();
  server_->Shutdown(std::chrono::system_clock::now());
  // Cancelled calls end by themselves, but a queue must not be shut down while one may still start an
  // operation.
  shared_.running.WaitIdle(TimePoint::max());
  for (auto& queue : queues_) queue->Shutdown();
  for (auto& thread : threads_) thread.join();
  // Where threads could not be made for all.
  for (size_t i = threads_.size(); i < queues_.size(); ++i) ServeJobs(queues_[i].get());
  threads_.clear();
  {
    MutexLock lock(health_mutex_);
    server_.reset();
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
