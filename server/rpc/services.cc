#include "server/rpc/services.h"

#include <memory>
#include <type_traits>
#include <utility>

#include "server/rpc/calls/arrays.h"
#include "server/rpc/calls/execute.h"
#include "server/rpc/calls/metadata.h"
#include "server/rpc/calls/regions.h"
#include "server/rpc/transport/crew.h"

namespace tilewire::rpc {
namespace {

// Requests asked for in advance, a method: a burst finds somebody waiting.
constexpr int kAccepts = 64;
// The same of calls that stream, a method and queue.
constexpr int kStreamAccepts = 4;

}  // namespace

void Services::RegisterWith(grpc::ServerBuilder* builder) {
  builder->RegisterService(&kernels_);
  builder->RegisterService(&arrays_);
  builder->RegisterService(&regions_);
  builder->RegisterService(&device_);
  health_.RegisterWith(builder);
  unknown_.RegisterWith(builder);
}

void Services::Accept(grpc::ServerCompletionQueue* queue,
                      const std::vector<std::unique_ptr<QueueThread>>& streams) {
  for (int i = 0; i < kAccepts; ++i) AcceptKernels(queue);
  // gRPC takes them in this order, so that calls go round the queues.
  for (int i = 0; i < kStreamAccepts; ++i)
    for (const auto& home : streams) AcceptStreams(queue, home.get());
  AcceptArrays(queue);
  AcceptRegions(queue);
  AcceptUnary(&device_, "Device.Describe", queue, &ServeDescribe);
  AcceptUnary(&device_, "Device.DescribeKernels", queue, &ServeDescribeKernels);
  AcceptUnary(&device_, "Device.MeasureCeilings", queue, &ServeMeasureCeilings);
  health_.Accept(queue);
  unknown_.Accept(queue);
}

void Services::WaitAccepted() {
  acceptors_.WaitEnded();
  health_.WaitAccepted();
  unknown_.WaitAccepted();
}

void Services::AcceptKernels(grpc::ServerCompletionQueue* queue) {
  AcceptUnary(&kernels_, "Kernels.Rmse", queue, &ServeRmse);
  AcceptUnary(&kernels_, "Kernels.Transpose", queue, &ServeTranspose);
  AcceptUnary(&kernels_, "Kernels.GaussianPdf", queue, &ServeGaussianPdf);
  AcceptUnary(&kernels_, "Kernels.Compute", queue, &ServeCompute);
}

template <typename Service>
Detached Services::AcceptUnary(Service* service, std::string method, grpc::ServerCompletionQueue* queue,
                               UnaryHandler handler) {
  const int index = service->IndexOf(method.substr(method.find('.') + 1));
  const Acceptors::One accepting(&acceptors_);
  for (;;) {
    auto call = std::make_shared<UnaryCall>(shared_, receive_, method, queue);
    call->computes = std::is_same_v<Service, KernelsService>;
    call->WatchDone();
    const bool ok = co_await Operation(
        [&](void* tag) { service->Request(index, &call->context(), &call->stream, queue, tag); });
    if (!ok) co_return;  // shutting down
    call->Started();
    RunUnary(std::move(call), handler);
  }
}

template <typename Make, typename Request>
Detached Services::AcceptStream(QueueThread* home, Make make, Request request) {
  const Acceptors::One accepting(&acceptors_);
  for (;;) {
    auto call = make();
    call->WatchDone();
    const bool ok = co_await Operation([&](void* tag) { request(*call, tag); });
    if (!ok) co_return;
    Crew::Took(false);
    call->Started();
    call->stay = QueueThread::Stay(home);
    co_await Onto(home->queue());
    RunStream(std::move(call));
  }
}

void Services::AcceptStreams(grpc::ServerCompletionQueue* queue, QueueThread* home) {
  grpc::ServerCompletionQueue* const own = home->queue();
  AcceptStream(
      home,
      [=, this] { return std::make_shared<ExecuteCall>(shared_, receive_, "Kernels.Execute", own, false); },
      [=, this](ExecuteCall& call, void* tag) {
        kernels_.RequestExecute(&call.context(), &call.stream, own, queue, tag);
      });
  AcceptStream(
      home, [=, this] { return std::make_shared<ExecuteCall>(shared_, receive_, "Arrays.Put", own, true); },
      [=, this](ExecuteCall& call, void* tag) {
        arrays_.RequestPut(&call.context(), &call.stream, own, queue, tag);
      });
  AcceptStream(
      home, [=, this] { return std::make_shared<GetCall>(shared_, "Arrays.Get", own); },
      [=, this](GetCall& call, void* tag) {
        arrays_.RequestGet(&call.context(), &call.request, &call.writer, own, queue, tag);
      });
}

void Services::AcceptArrays(grpc::ServerCompletionQueue* queue) {
  AcceptUnary(&arrays_, "Arrays.Stat", queue, &ServeStat);
  AcceptUnary(&arrays_, "Arrays.List", queue, &ServeList);
  AcceptUnary(&arrays_, "Arrays.Delete", queue, &ServeDelete);
}

void Services::AcceptRegions(grpc::ServerCompletionQueue* queue) {
  AcceptUnary(&regions_, "Regions.Register", queue, &ServeRegister);
  AcceptUnary(&regions_, "Regions.Unregister", queue, &ServeUnregister);
  AcceptUnary(&regions_, "Regions.List", queue, &ServeListRegions);
}

}  // namespace tilewire::rpc
