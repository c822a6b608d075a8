#include "tests/unit/client_fake_server.h"

#include <grpcpp/ext/health_check_service_server_builder_option.h>

#include <chrono>
#include <thread>

#include "tests/unit/client_fake_impl.h"
#include "tests/unit/waiting.h"

namespace tilewire::client::testing {

FakeServer::Impl::Impl(const FakeBehaviour& behaviour, int port) : behaviour_(behaviour) {
  [[maybe_unused]] static const bool kept = (grpc_init(), true);  // see KeepGrpc in client/cpp/channels.cc
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(static_cast<v1::Kernels::Service*>(this));
  builder.RegisterService(static_cast<v1::Device::Service*>(this));
  builder.RegisterService(static_cast<v1::Arrays::Service*>(this));
  builder.SetMaxReceiveMessageSize((4 << 20) + (64 << 10));
  server_ = builder.BuildAndStart();
  server_->GetHealthCheckService()->SetServingStatus(behaviour.serving);
}

grpc::Status FakeServer::Impl::Begin(grpc::ServerContext* context, bool stream, FakeBehaviour* behaviour) {
  const std::lock_guard lock(mutex_);
  ++(stream ? log_.streams : log_.calls);
  const auto metadata = [context](const char* key) -> std::string {
    const auto found = context->client_metadata().find(key);
    if (found == context->client_metadata().end()) return "";
    return {found->second.data(), found->second.size()};
  };
  log_.request_id = metadata("x-request-id");
  log_.who = metadata("who");
  *behaviour = behaviour_;
  if (behaviour_.busy > 0 && behaviour_.busy-- > 0) return TooBusy(context);
  if (behaviour_.unavailable > 0 && behaviour_.unavailable-- > 0)
    return WithDetails(grpc::UNAVAILABLE, "the server is going away", "DRAINING");
  if (behaviour_.cut > 0 && behaviour_.cut-- > 0)
    return {grpc::RESOURCE_EXHAUSTED, "Received RST_STREAM with error code 11"};
  return grpc::Status::OK;
}

grpc::Status FakeServer::Impl::TooBusy(grpc::ServerContext* context) const {
  if (behaviour_.pushback_ms)
    context->AddTrailingMetadata("grpc-retry-pushback-ms", std::to_string(*behaviour_.pushback_ms));
  return WithDetails(grpc::RESOURCE_EXHAUSTED, "the queue is full", "BUSY",
                     {{"field", behaviour_.busy_field}});
}

grpc::Status FakeServer::Impl::AwaitCancel(grpc::ServerContext* context) {
  (void)tilewire::testing::Eventually([context] { return context->IsCancelled(); }, std::chrono::hours(1));
  const std::lock_guard lock(mutex_);
  ++log_.cancelled;
  return {grpc::CANCELLED, "gone"};
}

template <typename Response>
grpc::Status FakeServer::Impl::Answer(const Result<Computed>& computed, const v1::Options& options,
                                      uint64_t bytes_in, const FakeBehaviour& behaviour, Response* response) {
  if (behaviour.use_execute) return WithDetails(grpc::RESOURCE_EXHAUSTED, "call Execute", "USE_EXECUTE");
  const Lie lie = behaviour.lie;
  if (!computed) return FromStatus(computed.error());
  response->set_numeric_version(computed->version);
  FillTiming(response->mutable_timing(), bytes_in, options.has_store() ? 0 : computed->bytes.size());
  v1::ArrayResult* const result = response->mutable_result();
  if (options.has_store()) return Store(options.store(), *computed, result);
  WriteSpec(computed->spec, result->mutable_spec());
  if (lie == Lie::kWrongSpec) result->mutable_spec()->add_shape(3);
  if (lie == Lie::kStored) result->set_array("fake-array-9");
  result->set_data(lie == Lie::kShortData ? computed->bytes.substr(1) : computed->bytes);
  if (lie == Lie::kWrongBits) result->mutable_data()->at(0) ^= 1;
  return grpc::Status::OK;
}

grpc::Status FakeServer::Impl::Take(const v1::Operand& operand, const std::string& field, Computed* out) {
  if (!operand.array().empty()) {
    const auto array = arrays_.Find(operand.array());
    if (!array) return FakeArrays::NotFound(operand.array(), field + ".array");
    *out = {array->spec, array->bytes, ""};
    return grpc::Status::OK;
  }
  const auto spec = ReadSpec(operand.spec());
  if (!spec) return FromStatus(spec.error());
  if (operand.data().size() != static_cast<size_t>(spec->bytes()))
    return WithDetails(grpc::INVALID_ARGUMENT, "data length differs from the shape", "BAD_VALUE");
  *out = {*spec, operand.data(), ""};
  return grpc::Status::OK;
}

grpc::Status FakeServer::Impl::Rmse(grpc::ServerContext* context, const v1::RmseRequest* request,
                                    v1::RmseResponse* response) {
  FakeBehaviour behaviour;
  if (auto status = Begin(context, false, &behaviour); !status.ok()) return status;
  if (behaviour.silent) return AwaitCancel(context);
  Note(request->options());
  Computed a, b;
  if (auto status = Take(request->a(), "a", &a); !status.ok()) return status;
  if (auto status = Take(request->b(), "b", &b); !status.ok()) return status;
  const uint64_t sent = request->a().data().size() + request->b().data().size();
  return Answer(ComputeRmse(request->op(), a.spec, a.bytes, b.bytes), request->options(), sent, behaviour,
                response);
}

template <typename Request, typename Response, typename Function>
grpc::Status FakeServer::Impl::OneOperand(grpc::ServerContext* context, const Request& request,
                                          const Function& compute, Response* response) {
  FakeBehaviour behaviour;
  if (auto status = Begin(context, false, &behaviour); !status.ok()) return status;
  if (behaviour.silent) return AwaitCancel(context);
  Note(request.options());
  Computed input;
  if (auto status = Take(request.input(), "input", &input); !status.ok()) return status;
  return Answer(compute(request.op(), input.spec, input.bytes), request.options(),
                request.input().data().size(), behaviour, response);
}

grpc::Status FakeServer::Impl::Transpose(grpc::ServerContext* context, const v1::TransposeRequest* request,
                                         v1::TransposeResponse* response) {
  return OneOperand(context, *request, ComputeTranspose, response);
}

grpc::Status FakeServer::Impl::GaussianPdf(grpc::ServerContext* context,
                                           const v1::GaussianPdfRequest* request,
                                           v1::GaussianPdfResponse* response) {
  return OneOperand(context, *request, ComputeGaussian, response);
}

grpc::Status FakeServer::Impl::Describe(grpc::ServerContext* context, const v1::DescribeRequest*,
                                        v1::DescribeResponse* response) {
  FakeBehaviour behaviour;
  if (auto status = Begin(context, false, &behaviour); !status.ok()) return status;
  if (behaviour.silent) return AwaitCancel(context);
  FillDescription(behaviour, response);
  return grpc::Status::OK;
}

grpc::Status FakeServer::Impl::DescribeKernels(grpc::ServerContext* context,
                                               const v1::DescribeKernelsRequest* request,
                                               v1::DescribeKernelsResponse* response) {
  FakeBehaviour behaviour;
  if (auto status = Begin(context, false, &behaviour); !status.ok()) return status;
  if (behaviour.silent) return AwaitCancel(context);
  if (behaviour.no_kernels) {
    response->set_device("cpu");
  } else {
    FillKernels(*request, response);
  }
  return grpc::Status::OK;
}

FakeServer::FakeServer(const FakeBehaviour& behaviour, int port)
    : impl_(std::make_unique<Impl>(behaviour, port)) {}
FakeServer::~FakeServer() = default;
std::string FakeServer::address() const {
  return "127.0.0.1:" + std::to_string(impl_->port_);
}
int FakeServer::port() const {
  return impl_->port_;
}
void FakeServer::Behave(const FakeBehaviour& behaviour) {
  const std::lock_guard lock(impl_->mutex_);
  impl_->behaviour_ = behaviour;
}
FakeLog FakeServer::log() const {
  const std::lock_guard lock(impl_->mutex_);
  v1::ListResponse kept;
  impl_->arrays_.List(UINT32_MAX, "", &kept);
  FakeLog log = impl_->log_;
  log.arrays = kept.arrays_size();
  return log;
}

}  // namespace tilewire::client::testing
