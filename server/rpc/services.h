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
#include "server/rpc/transport/unary_by_headers.h"
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
  using KernelsService = UnaryByHeaders<v1::Kernels::WithRawMethod_Execute<v1::Kernels::Service>>;
  using ArraysService =
      UnaryByHeaders<v1::Arrays::WithRawMethod_Put<v1::Arrays::WithRawMethod_Get<v1::Arrays::Service>>>;
  using RegionsService = UnaryByHeaders<v1::Regions::Service>;
  using DeviceService = UnaryByHeaders<v1::Device::Service>;

  template <typename Service>
  Detached AcceptUnary(Service* service, std::string method, grpc::ServerCompletionQueue* queue,
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
  KernelsService kernels_{"Kernels", v1::RmseRequest::descriptor()->file()};
  ArraysService arrays_{"Arrays", v1::GetRequest::descriptor()->file()};
  RegionsService regions_{"Regions", v1::RegisterRequest::descriptor()->file()};
  DeviceService device_{"Device", v1::DescribeRequest::descriptor()->file()};
  HealthService health_;
  UnknownMethods unknown_{shared_};
};

}  // namespace tilewire::rpc
