// What one gRPC server serves, and the coroutines that take its calls.
#pragma once

#include <grpcpp/server_builder.h>

#include <memory>
#include <string>
#include <vector>

#include "server/rpc/calls/context.h"
#include "server/rpc/calls/unary.h"
#include "server/rpc/calls/unknown.h"
#include "server/rpc/transport/acceptors.h"
#include "server/rpc/transport/coroutine.h"
#include "server/rpc/transport/health_service.h"
#include "server/rpc/transport/queue_thread.h"
#include "tilewire/v1/arrays.grpc.pb.h"
#include "tilewire/v1/device.grpc.pb.h"
#include "tilewire/v1/kernels.grpc.pb.h"
#include "tilewire/v1/regions.grpc.pb.h"

namespace tilewire::rpc {

/// All services, for one server: gRPC lets no service belong to two. Outlives that server.
class Services {
 public:
  /// Both outlive the calls; `receive` is what gRPC may hold for calls of this server.
  Services(CallContext* shared, Receiving* receive) : shared_(shared), receive_(receive) {}
  Services(const Services&) = delete;

  void RegisterWith(grpc::ServerBuilder* builder);
  /// From now on calls are taken from `queue`, a queue of the server, until it shuts down. Unary ones are
  /// served there, by a Crew; those that stream by `streams` in turn, which outlive them.
  void Accept(grpc::ServerCompletionQueue* queue, const std::vector<std::unique_ptr<QueueThread>>& streams);
  void SetHealth(const std::string& service, bool serving) { health_.Set(service, serving); }
  /// Returns when nothing asks for another call. After the server's shutdown, before that of its queues.
  void WaitAccepted();
  /// Returns when no call of health is left. After the server's shutdown.
  void WaitIdle() { health_.WaitIdle(); }

 private:
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

  template <typename Request>
  Detached AcceptUnary(std::string method, grpc::ServerCompletionQueue* queue, Request request,
                       UnaryHandler handler);
  /// `make()` gives a new call, `request(call, tag)` asks for one, which `home` then serves.
  template <typename Make, typename Request>
  Detached AcceptStream(QueueThread* home, Make make, Request request);
  void AcceptStreams(grpc::ServerCompletionQueue* queue, QueueThread* home);
  void AcceptKernels(grpc::ServerCompletionQueue* queue);
  void AcceptArrays(grpc::ServerCompletionQueue* queue);
  void AcceptRegions(grpc::ServerCompletionQueue* queue);

  CallContext* const shared_;
  Receiving* const receive_;
  Acceptors acceptors_;
  KernelsService kernels_;
  ArraysService arrays_;
  RegionsService regions_;
  DeviceService device_;
  HealthService health_;
  UnknownMethods unknown_{shared_};
};

}  // namespace tilewire::rpc
