#include "server/rpc/services.h"

#include <memory>
#include <utility>

#include "server/rpc/calls/arrays.h"
#include "server/rpc/calls/execute.h"
#include "server/rpc/calls/metadata.h"
#include "server/rpc/calls/regions.h"

namespace tilewire::rpc {
namespace {

// Requests asked for in advance, a method and queue: a burst finds somebody waiting.
constexpr int kAccepts = 4;

}  // namespace

void Services::RegisterWith(grpc::ServerBuilder* builder) {
  builder->RegisterService(&kernels_);
  builder->RegisterService(&arrays_);
  builder->RegisterService(&regions_);
  builder->RegisterService(&device_);
  builder->RegisterCallbackGenericService(&unknown_);
}

void Services::Accept(grpc::ServerCompletionQueue* queue) {
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
Detached Services::AcceptUnary(std::string method, grpc::ServerCompletionQueue* queue, Request request,
                               UnaryHandler handler) {
  for (;;) {
    auto call = std::make_shared<UnaryCall>(shared_, receive_, method, queue);
    call->WatchDone();
    const bool ok = co_await Operation(
        [&](void* tag) { request(&call->context(), &call->request, &call->responder, queue, queue, tag); });
    if (!ok) co_return;  // shutting down
    call->Started();
    RunUnary(std::move(call), handler);
  }
}

template <typename Make, typename Request>
Detached Services::AcceptStream(Make make, Request request) {
  for (;;) {
    auto call = make();
    call->WatchDone();
    const bool ok = co_await Operation([&](void* tag) { request(*call, tag); });
    if (!ok) co_return;
    call->Started();
    RunStream(std::move(call));
  }
}

void Services::AcceptStreams(grpc::ServerCompletionQueue* queue) {
  AcceptStream(
      [=, this] { return std::make_shared<ExecuteCall>(shared_, receive_, "Kernels.Execute", queue, false); },
      [=, this](ExecuteCall& call, void* tag) {
        kernels_.RequestExecute(&call.context(), &call.stream, queue, queue, tag);
      });
  AcceptStream(
      [=, this] { return std::make_shared<ExecuteCall>(shared_, receive_, "Arrays.Put", queue, true); },
      [=, this](ExecuteCall& call, void* tag) {
        arrays_.RequestPut(&call.context(), &call.stream, queue, queue, tag);
      });
  AcceptStream([=, this] { return std::make_shared<GetCall>(shared_, "Arrays.Get", queue); },
               [=, this](GetCall& call, void* tag) {
                 arrays_.RequestGet(&call.context(), &call.request, &call.writer, queue, queue, tag);
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
