#include "server/rpc/services.h"

#include <memory>
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
// A message that is copied while others hardly notice.
constexpr size_t kQuicklyTakenBytes = 64 << 10;

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
  AcceptUnary(
      "Device.Describe", queue, [this](auto... arguments) { device_.RequestDescribe(arguments...); },
      &ServeDescribe);
  AcceptUnary(
      "Device.DescribeKernels", queue,
      [this](auto... arguments) { device_.RequestDescribeKernels(arguments...); }, &ServeDescribeKernels);
  AcceptUnary(
      "Device.MeasureCeilings", queue,
      [this](auto... arguments) { device_.RequestMeasureCeilings(arguments...); }, &ServeMeasureCeilings);
  health_.Accept(queue);
  unknown_.Accept(queue);
}

void Services::WaitAccepted() {
  acceptors_.WaitEnded();
  health_.WaitAccepted();
  unknown_.WaitAccepted();
}

void Services::AcceptKernels(grpc::ServerCompletionQueue* queue) {
  AcceptUnary(
      "Kernels.Rmse", queue, [this](auto... arguments) { kernels_.RequestRmse(arguments...); }, &ServeRmse);
  AcceptUnary(
      "Kernels.Transpose", queue, [this](auto... arguments) { kernels_.RequestTranspose(arguments...); },
      &ServeTranspose);
  AcceptUnary(
      "Kernels.GaussianPdf", queue, [this](auto... arguments) { kernels_.RequestGaussianPdf(arguments...); },
      &ServeGaussianPdf);
  AcceptUnary(
      "Kernels.Compute", queue, [this](auto... arguments) { kernels_.RequestCompute(arguments...); },
      &ServeCompute);
}

template <typename Request>
Detached Services::AcceptUnary(std::string method, grpc::ServerCompletionQueue* queue, Request request,
                               UnaryHandler handler) {
  const Acceptors::One accepting(&acceptors_);
  for (;;) {
    auto call = std::make_shared<UnaryCall>(shared_, receive_, method, queue);
    call->WatchDone();
    const bool ok = co_await Operation(
        [&](void* tag) { request(&call->context(), &call->request, &call->responder, queue, queue, tag); });
    if (!ok) co_return;  // shutting down
    Crew::Took(call->request.Length() > kQuicklyTakenBytes);
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
  AcceptUnary(
      "Arrays.Stat", queue, [this](auto... arguments) { arrays_.RequestStat(arguments...); }, &ServeStat);
  AcceptUnary(
      "Arrays.List", queue, [this](auto... arguments) { arrays_.RequestList(arguments...); }, &ServeList);
  AcceptUnary(
      "Arrays.Delete", queue, [this](auto... arguments) { arrays_.RequestDelete(arguments...); },
      &ServeDelete);
}

void Services::AcceptRegions(grpc::ServerCompletionQueue* queue) {
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

}  // namespace tilewire::rpc
