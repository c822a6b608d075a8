#include "tests/unit/client_fake_server.h"

#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "proto/wire/codec.h"
#include "tests/unit/client_fake_compute.h"
#include "tests/unit/client_fake_reply.h"
#include "tilewire/v1/device.grpc.pb.h"
#include "tilewire/v1/kernels.grpc.pb.h"

namespace tilewire::client::testing {
class FakeServer::Impl final : public v1::Kernels::Service, public v1::Device::Service {
 public:
  Impl(const FakeBehaviour& behaviour, int port);
  ~Impl() override { server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2)); }

  using Stream = grpc::ServerReaderWriter<v1::ExecuteResponse, v1::ExecuteRequest>;
  grpc::Status Rmse(grpc::ServerContext* context, const v1::RmseRequest* request,
                    v1::RmseResponse* response) override;
  grpc::Status Transpose(grpc::ServerContext* context, const v1::TransposeRequest* request,
                         v1::TransposeResponse* response) override;
  grpc::Status GaussianPdf(grpc::ServerContext* context, const v1::GaussianPdfRequest* request,
                           v1::GaussianPdfResponse* response) override;
  grpc::Status Execute(grpc::ServerContext* context, Stream* stream) override;
  grpc::Status Describe(grpc::ServerContext* context, const v1::DescribeRequest* request,
                        v1::DescribeResponse* response) override;
  grpc::Status DescribeKernels(grpc::ServerContext* context, const v1::DescribeKernelsRequest* request,
                               v1::DescribeKernelsResponse* response) override;
  int port_ = 0;
  mutable std::mutex mutex_;
  FakeBehaviour behaviour_;
  FakeLog log_;
  std::unique_ptr<grpc::Server> server_;

 private:
  using Lie = FakeBehaviour::Lie;
  void Note(const v1::Options& options) {
    const std::lock_guard lock(mutex_);
    log_.trace = options.trace();
    log_.sequential = options.sequential();
    log_.block_bytes = options.block_bytes();
    log_.lanes = options.lanes();
  }
  /// Counts the call and refuses it where behaviour says so; fills `behaviour` for the rest of it.
  grpc::Status Begin(grpc::ServerContext* context, bool stream, FakeBehaviour* behaviour);
  grpc::Status AwaitCancel(grpc::ServerContext* context);
  grpc::Status Receive(Stream* stream, const FakeBehaviour& behaviour, std::vector<Operand>* operands);
  static void Send(Stream* stream, const FakeBehaviour& behaviour, const Computed& computed);
  /// A unary call with one operand; `compute(op, spec, bytes)` gives its result.
  template <typename Request, typename Response, typename Compute>
  grpc::Status OneOperand(grpc::ServerContext* context, const Request& request, const Compute& compute,
                          Response* response);
  template <typename Response>
  grpc::Status Answer(const Result<Computed>& computed, uint64_t bytes_in, Lie lie, Response* response);
};

FakeServer::Impl::Impl(const FakeBehaviour& behaviour, int port) : behaviour_(behaviour) {
  [[maybe_unused]] static const bool kept = (grpc_init(), true);  // see KeepGrpc in client/cpp/channels.cc
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(static_cast<v1::Kernels::Service*>(this));
  builder.RegisterService(static_cast<v1::Device::Service*>(this));
  builder.SetMaxReceiveMessageSize((4 << 20) + (64 << 10));
  server_ = builder.BuildAndStart();
  server_->GetHealthCheckService()->SetServingStatus(behaviour.serving);
}

grpc::Status FakeServer::Impl::Begin(grpc::ServerContext* context, bool stream, FakeBehaviour* behaviour) {
  const std::lock_guard lock(mutex_);
  ++(stream ? log_.streams : log_.calls);
  log_.request_id.clear();
  if (const auto id = context->client_metadata().find("x-request-id"); id != context->client_metadata().end())
    log_.request_id.assign(id->second.data(), id->second.size());
  *behaviour = behaviour_;
  if (behaviour_.busy > 0 && behaviour_.busy-- > 0) {
    if (behaviour_.pushback_ms)
      context->AddTrailingMetadata("grpc-retry-pushback-ms", std::to_string(*behaviour_.pushback_ms));
    return WithDetails(grpc::RESOURCE_EXHAUSTED, "the queue is full", "BUSY");
  }
  if (behaviour_.unavailable > 0 && behaviour_.unavailable-- > 0)
    return WithDetails(grpc::UNAVAILABLE, "the server is going away", "DRAINING");
  if (behaviour_.cut > 0 && behaviour_.cut-- > 0)
    return {grpc::RESOURCE_EXHAUSTED, "Received RST_STREAM with error code 11"};
  if (behaviour_.use_execute && !stream)
    return WithDetails(grpc::RESOURCE_EXHAUSTED, "call Execute", "USE_EXECUTE");
  return grpc::Status::OK;
}

grpc::Status FakeServer::Impl::AwaitCancel(grpc::ServerContext* context) {
  while (!context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const std::lock_guard lock(mutex_);
  ++log_.cancelled;
  return {grpc::CANCELLED, "gone"};
}

template <typename Response>
grpc::Status FakeServer::Impl::Answer(const Result<Computed>& computed, uint64_t bytes_in, Lie lie,
                                      Response* response) {
  if (!computed) return FromStatus(computed.error());
  WriteSpec(computed->spec, response->mutable_result()->mutable_spec());
  if (lie == Lie::kWrongSpec) response->mutable_result()->mutable_spec()->add_shape(3);
  response->mutable_result()->set_data(lie == Lie::kShortData ? computed->bytes.substr(1) : computed->bytes);
  if (lie == Lie::kWrongBits) response->mutable_result()->mutable_data()->at(0) ^= 1;
  response->set_numeric_version(computed->version);
  FillTiming(response->mutable_timing(), bytes_in, computed->bytes.size());
  return grpc::Status::OK;
}

grpc::Status FakeServer::Impl::Rmse(grpc::ServerContext* context, const v1::RmseRequest* request,
                                    v1::RmseResponse* response) {
  FakeBehaviour behaviour;
  if (auto status = Begin(context, false, &behaviour); !status.ok()) return status;
  if (behaviour.silent) return AwaitCancel(context);
  Note(request->options());
  const auto spec = ReadSpec(request->a().spec());
  if (!spec) return FromStatus(spec.error());
  const auto bytes = static_cast<size_t>(spec->bytes());
  if (request->a().data().size() != bytes || request->b().data().size() != bytes)
    return WithDetails(grpc::INVALID_ARGUMENT, "data length differs from the shape", "BAD_VALUE");
  return Answer(ComputeRmse(request->op(), *spec, request->a().data(), request->b().data()), 2 * bytes,
                behaviour.lie, response);
}

template <typename Request, typename Response, typename Compute>
grpc::Status FakeServer::Impl::OneOperand(grpc::ServerContext* context, const Request& request,
                                          const Compute& compute, Response* response) {
  FakeBehaviour behaviour;
  if (auto status = Begin(context, false, &behaviour); !status.ok()) return status;
  if (behaviour.silent) return AwaitCancel(context);
  Note(request.options());
  const auto spec = ReadSpec(request.input().spec());
  if (!spec) return FromStatus(spec.error());
  const std::string& data = request.input().data();
  if (data.size() != static_cast<size_t>(spec->bytes()))
    return WithDetails(grpc::INVALID_ARGUMENT, "data length differs from the shape", "BAD_VALUE");
  return Answer(compute(request.op(), *spec, data), data.size(), behaviour.lie, response);
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

grpc::Status FakeServer::Impl::Execute(grpc::ServerContext* context, Stream* stream) {
  FakeBehaviour behaviour;
  if (auto status = Begin(context, true, &behaviour); !status.ok()) return status;
  v1::ExecuteRequest request;
  if (!stream->Read(&request) || !request.has_open()) return {grpc::INVALID_ARGUMENT, "no Open"};
  if (behaviour.silent) return AwaitCancel(context);
  const v1::Open open = request.open();
  Note(open.options());
  std::vector<Operand> operands;
  ArraySpec spec;
  for (const auto& operand : open.operands()) {
    const auto read = ReadSpec(operand);
    if (!read) return FromStatus(read.error());
    spec = *read;
    operands.emplace_back(static_cast<uint64_t>(spec.bytes()), behaviour.block_bytes);
  }
  v1::ExecuteResponse response;
  v1::Opened* opened = response.mutable_opened();
  opened->set_job("fake-1");
  opened->set_block_bytes(behaviour.block_bytes);
  opened->set_window_bytes(behaviour.window_bytes);
  opened->set_max_message_bytes(behaviour.max_message_bytes);
  opened->set_max_streams(1);
  if (behaviour.lie != Lie::kNoOpened) stream->Write(response);
  if (behaviour.lie == Lie::kOpenedTwice) stream->Write(response);
  if (behaviour.stalled) return AwaitCancel(context);
  if (behaviour.lie != Lie::kNoOpened)
    if (auto status = Receive(stream, behaviour, &operands); !status.ok()) return status;
  if (operands.size() != (open.has_rmse() ? 2u : 1u))
    return {grpc::INVALID_ARGUMENT, "wrong number of operands"};
  const auto computed =
      open.has_rmse()        ? ComputeRmse(open.rmse(), spec, operands[0].data(), operands[1].data())
      : open.has_transpose() ? ComputeTranspose(open.transpose(), spec, operands[0].data())
                             : ComputeGaussian(open.gaussian_pdf(), spec, operands[0].data());
  if (!computed) return FromStatus(computed.error());
  Send(stream, behaviour, *computed);
  return grpc::Status::OK;
}

grpc::Status FakeServer::Impl::Receive(Stream* stream, const FakeBehaviour& behaviour,
                                       std::vector<Operand>* operands) {
  v1::ExecuteRequest request;
  for (int count = 0; stream->Read(&request); ++count) {
    if (behaviour.fail_after_chunks && count >= *behaviour.fail_after_chunks)
      return WithDetails(grpc::DATA_LOSS, "chunk.crc32c is 7; allowed: 8", "CHECKSUM",
                         {{"field", "chunk.crc32c"}, {"value", "7"}, {"allowed", "8"}});
    const std::lock_guard lock(mutex_);
    if (!request.has_chunk() || request.chunk().operand() >= operands->size()) {
      log_.mistakes.push_back("no chunk of a known operand");
      return {grpc::INVALID_ARGUMENT, log_.mistakes.back()};
    }
    const v1::Chunk& chunk = request.chunk();
    log_.chunks.push_back({chunk.operand(), chunk.offset(), chunk.data().size()});
    std::string complaint = TakeWithin(behaviour.window_bytes, chunk, operands);
    if (request.ByteSizeLong() > behaviour.max_message_bytes) complaint = "a message over max_message_bytes";
    if (!complaint.empty()) {
      log_.mistakes.push_back(complaint);
      return WithDetails(grpc::INVALID_ARGUMENT, complaint, "RUN_RULE");
    }
  }
  for (const Operand& operand : *operands) {
    if (operand.complete()) continue;
    const std::lock_guard lock(mutex_);
    log_.mistakes.push_back("bytes missing");
    return WithDetails(grpc::INVALID_ARGUMENT, "bytes missing", "BYTES_MISSING");
  }
  return grpc::Status::OK;
}

void FakeServer::Impl::Send(Stream* stream, const FakeBehaviour& behaviour, const Computed& computed) {
  v1::ExecuteResponse message;
  const bool small = computed.bytes.size() <= 65536;
  for (size_t at = 0; !small && at < computed.bytes.size(); at += behaviour.output_chunk_bytes) {
    v1::Chunk* chunk = message.mutable_chunk();
    chunk->set_offset(at);
    chunk->set_data(computed.bytes.substr(at, behaviour.output_chunk_bytes));
    const auto* data = reinterpret_cast<const uint8_t*>(chunk->data().data());
    const uint32_t crc = wire::Crc32c({{data, chunk->data().size()}});
    chunk->set_crc32c(behaviour.lie == Lie::kWrongChecksum ? crc + 1 : crc);
    if (behaviour.lie == Lie::kMissingOutput && at > 0) break;
    stream->Write(message);
    if (behaviour.lie == Lie::kRepeatedOutput) stream->Write(message);
  }
  if (behaviour.lie == Lie::kTooMuchOutput) {
    message.mutable_chunk()->set_offset(computed.bytes.size());
    message.mutable_chunk()->set_data("x");
    message.mutable_chunk()->clear_crc32c();
    stream->Write(message);
  }
  if (behaviour.lie == Lie::kNoResult) return;
  v1::Result* result = message.mutable_result();
  v1::ArrayResult* array = result->add_results();
  WriteSpec(computed.spec, array->mutable_spec());
  if (behaviour.lie == Lie::kWrongSpec) array->mutable_spec()->set_dtype(v1::DTYPE_I8);
  if (small) array->set_data(behaviour.lie == Lie::kShortData ? computed.bytes.substr(1) : computed.bytes);
  result->set_numeric_version(computed.version);
  FillTiming(result->mutable_timing(), 0, computed.bytes.size());
  result->mutable_timing()->set_receive_us(50);
  result->mutable_timing()->set_overlap(1.25);
  if (behaviour.lie == Lie::kTwoResults) stream->Write(message);
  stream->Write(message);
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
  return impl_->log_;
}

}  // namespace tilewire::client::testing
