#include "client/cpp/client.h"

#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "client/cpp/channels.h"
#include "client/cpp/convert.h"
#include "client/cpp/retry.h"
#include "client/cpp/span_recorder.h"
#include "client/cpp/striped_call.h"
#include "client/cpp/unary_call.h"
#include "tilewire/v1/device.grpc.pb.h"
#include "tilewire/v1/kernels.grpc.pb.h"

namespace tilewire::client {
namespace {

constexpr int64_t kUnaryBytes = 1 << 20;

/// Makes Fortran order free for a transpose: its bytes are the C order array with reversed axes, so only the
/// permutation changes.
void TransposeAsStored(TransposeOp* op, ArraySource* source) {
  const int rank = source->spec().shape.rank();
  std::vector<int32_t> axes;
  for (int i = 0; i < rank; ++i) {
    int32_t axis = op->axes.empty() ? rank - 1 - i : op->axes[static_cast<size_t>(i)];
    if (axis < 0) axis += rank;
    axes.push_back(rank - 1 - axis);
  }
  op->axes = std::move(axes);
  *source = source->AsStored();
}

std::optional<std::chrono::system_clock::time_point> DeadlineOf(const CallOptions& options) {
  if (!options.timeout) return std::nullopt;
  return std::chrono::system_clock::now() + *options.timeout;
}

}  // namespace

class Client::Impl {
 public:
  Impl(const std::string& address, const ConnectOptions& options)
      : channel_(MakeChannel(address, options)),
        kernels_(v1::Kernels::NewStub(channel_)),
        device_(v1::Device::NewStub(channel_)),
        stream_channels_(address, options) {}

  Result<Reply> Execute(Operation operation, std::span<const ArraySource> operands, const Sink& sink,
                        const CallOptions& options);
  Result<ServerInfo> Describe(const CallOptions& options);
  Result<ServerKernels> DescribeKernels(const v1::DescribeKernelsRequest& request,
                                        const CallOptions& options);
  Result<ServerCeilings> MeasureCeilings(const CallOptions& options);
  Result<std::chrono::nanoseconds> Ping(const CallOptions& options);

 private:
  Result<Reply> Attempts(CallSpec spec, bool streamed);
  Attempt Stream(const CallSpec& spec);

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Kernels::Stub> kernels_;
  std::unique_ptr<v1::Device::Stub> device_;
  StreamChannels stream_channels_;
};

Result<Reply> Client::Impl::Execute(Operation operation, std::span<const ArraySource> operands,
                                    const Sink& sink, const CallOptions& options) {
  std::vector<ArraySpec> specs;
  int64_t bytes = 0;
  for (const auto& operand : operands) {
    specs.push_back(operand.spec());
    bytes += operand.spec().bytes();
  }
  TILEWIRE_ASSIGN_OR_RETURN(const ArraySpec result, ResultSpec(operation, specs));
  std::vector<ArraySource> sources(operands.begin(), operands.end());
  if (auto* transpose = std::get_if<TransposeOp>(&operation); transpose && sources[0].fortran_order())
    TransposeAsStored(transpose, &sources[0]);
  CallSpec spec{operation, std::move(sources), result, sink, options, DeadlineOf(options)};
  const bool small = bytes <= kUnaryBytes && result.bytes() <= kUnaryBytes - bytes;
  return Attempts(std::move(spec),
                  options.form == CallForm::kAuto ? !small : options.form == CallForm::kStream);
}

Result<Reply> Client::Impl::Attempts(CallSpec spec, bool streamed) {
  const auto start = Retry::Clock::now();
  std::optional<SpanRecorder> recorder;
  if (spec.options.trace) spec.recorder = &recorder.emplace(start);
  std::optional<Retry::Clock::time_point> deadline;
  if (spec.options.timeout) deadline = start + *spec.options.timeout;
  Retry retry(spec.options.max_attempts, deadline);
  for (int attempts = 1;; ++attempts) {
    if (spec.options.stop.stop_requested())
      return Fail(Status(Code::kCancelled, "CANCELLED", "the call was cancelled"));
    const double begin_us = recorder ? recorder->Now() : 0;
    Attempt attempt = streamed ? Stream(spec) : UnaryCall(kernels_.get(), spec);
    if (attempt.status.ok()) {
      attempt.reply.attempts = attempts;
      attempt.reply.client_wall_us =
          std::chrono::duration<double, std::micro>(Retry::Clock::now() - start).count();
      if (recorder) attempt.reply.trace = recorder->Finish(attempt.reply.timing);
      return std::move(attempt.reply);
    }
    if (!streamed && attempt.status.reason() == "USE_EXECUTE" && spec.options.form == CallForm::kAuto) {
      streamed = true;
      if (recorder) recorder->Retry(begin_us);
      continue;
    }
    const auto wait = retry.Next(attempt.status, attempt.anything_sent);
    if (!wait) return Fail(std::move(attempt.status));
    Retry::Sleep(*wait, spec.options.stop);
    if (recorder) recorder->Retry(begin_us);
  }
}

Attempt Client::Impl::Stream(const CallSpec& spec) {
  uint32_t connections = spec.options.connections;
  if (connections == 0) {
    int64_t bytes = spec.result.bytes();
    for (const auto& source : spec.sources) bytes += source.spec().bytes();
    connections = WorthwhileConnections(bytes, std::thread::hardware_concurrency());
  }
  // Each stream would turn a Fortran order array around for itself.
  for (const auto& source : spec.sources)
    if (source.fortran_order()) connections = 1;
  return StripedCall(spec, &stream_channels_, connections).Run();
}

Result<ServerInfo> Client::Impl::Describe(const CallOptions& options) {
  grpc::ClientContext context;
  Prepare(options, DeadlineOf(options), &context);
  const std::stop_callback on_stop(options.stop, [&context] { context.TryCancel(); });
  v1::DescribeResponse response;
  const Status status = FromGrpc(device_->Describe(&context, {}, &response), context);
  if (!status.ok()) return Fail(status);
  return FromProto(response);
}

Result<ServerKernels> Client::Impl::DescribeKernels(const v1::DescribeKernelsRequest& request,
                                                    const CallOptions& options) {
  grpc::ClientContext context;
  Prepare(options, DeadlineOf(options), &context);
  const std::stop_callback on_stop(options.stop, [&context] { context.TryCancel(); });
  v1::DescribeKernelsResponse response;
  const Status status = FromGrpc(device_->DescribeKernels(&context, request, &response), context);
  if (!status.ok()) return Fail(status);
  return FromProto(response);
}

Result<ServerCeilings> Client::Impl::MeasureCeilings(const CallOptions& options) {
  grpc::ClientContext context;
  Prepare(options, DeadlineOf(options), &context);
  const std::stop_callback on_stop(options.stop, [&context] { context.TryCancel(); });
  v1::MeasureCeilingsResponse response;
  const Status status = FromGrpc(device_->MeasureCeilings(&context, {}, &response), context);
  if (!status.ok()) return Fail(status);
  ServerCeilings ceilings{response.device(), {}};
  for (const v1::Ceiling& ceiling : response.ceilings())
    ceilings.bytes_per_second.emplace_back(ceiling.name(), ceiling.bytes_per_second());
  return ceilings;
}

Result<std::chrono::nanoseconds> Client::Impl::Ping(const CallOptions& options) {
  // grpc.health.v1 needs no generated code here: the request for the whole server is the empty message, and
  // the reply has one field, the status as a number.
  constexpr uint64_t kServing = 1;
  const auto start = Retry::Clock::now();
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  Prepare(options, DeadlineOf(options), &context);
  const std::stop_callback on_stop(options.stop, [&context] { context.TryCancel(); });
  grpc::GenericStub stub(channel_);
  const grpc::Slice empty;
  const grpc::ByteBuffer request(&empty, 1);
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag;
  bool ok;
  queue.Next(&tag, &ok);
  const auto elapsed = Retry::Clock::now() - start;
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  if (!status.ok()) return Fail(FromGrpc(status, context));
  grpc::Slice reply;
  google::protobuf::UnknownFieldSet fields;
  if (!response.DumpToSingleSlice(&reply).ok() ||
      !fields.ParseFromArray(reply.begin(), static_cast<int>(reply.size())))
    return Fail(BadReply("an unreadable health reply"));
  uint64_t health = 0;
  for (int i = 0; i < fields.field_count(); ++i)
    if (fields.field(i).number() == 1 &&
        fields.field(i).type() == google::protobuf::UnknownField::TYPE_VARINT)
      health = fields.field(i).varint();
  if (health != kServing)
    return Fail(Status(Code::kUnavailable, "NOT_SERVING", "the server says that it does not serve"));
  return elapsed;
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

Client Client::Connect(const std::string& address, const ConnectOptions& options) {
  return Client(std::make_unique<Impl>(address, options));
}

Result<Reply> Client::Execute(const Operation& operation, std::span<const ArraySource> operands,
                              const Sink& sink, const CallOptions& options) {
  return impl_->Execute(operation, operands, sink, options);
}

Result<RmseReply> Client::Rmse(const ArraySource& a, const ArraySource& b, const RmseOp& op,
                               const CallOptions& options) {
  const ArraySource operands[2] = {a, b};
  const ArraySpec specs[2] = {a.spec(), b.spec()};
  TILEWIRE_ASSIGN_OR_RETURN(const ArraySpec result, ResultSpec(op, specs));
  RmseReply out;
  out.values.resize(
      static_cast<size_t>(result.shape.elements()));  // once: pieces may come on several threads
  const Sink sink = [&out](uint64_t offset, std::span<const uint8_t> bytes) {
    std::memcpy(reinterpret_cast<uint8_t*>(out.values.data()) + offset, bytes.data(), bytes.size());
    return Status();
  };
  TILEWIRE_ASSIGN_OR_RETURN(out.reply, impl_->Execute(op, operands, sink, options));
  return out;
}

Result<Reply> Client::Transpose(const ArraySource& input, const TransposeOp& op, const Sink& sink,
                                const CallOptions& options) {
  return impl_->Execute(op, {&input, 1}, sink, options);
}

Result<Reply> Client::GaussianPdf(const ArraySource& input, const GaussianOp& op, const Sink& sink,
                                  const CallOptions& options) {
  return impl_->Execute(op, {&input, 1}, sink, options);
}

Result<ServerInfo> Client::Describe(const CallOptions& options) {
  return impl_->Describe(options);
}
Result<ServerKernels> Client::DescribeKernels(const Operation& operation, std::span<const ArraySpec> operands,
                                              const CallOptions& options) {
  v1::DescribeKernelsRequest request;
  SetOperation(operation, &request);
  for (const ArraySpec& operand : operands) ToProto(operand, request.add_operands());
  return impl_->DescribeKernels(request, options);
}
Result<ServerKernels> Client::DescribeKernels(const CallOptions& options) {
  return impl_->DescribeKernels({}, options);
}
Result<ServerCeilings> Client::MeasureCeilings(const CallOptions& options) {
  return impl_->MeasureCeilings(options);
}
Result<std::chrono::nanoseconds> Client::Ping(const CallOptions& options) {
  return impl_->Ping(options);
}

}  // namespace tilewire::client
