#include "client/cpp/unary_call.h"

#include "client/cpp/span_recorder.h"

namespace tilewire::client {
namespace {

void FillOperand(const ArraySource& source, v1::Operand* operand) {
  ToProto(source.spec(), operand->mutable_spec());
  SourceReader reader(source);
  const SourceSlice slice = reader.Slice(0, static_cast<uint64_t>(source.spec().bytes()));
  operand->set_data(slice.bytes.data(), slice.bytes.size());
}

/// The reply of a unary call: all response messages have the same fields.
template <typename Response>
Status TakeUnary(const Response& response, const CallSpec& spec, Reply* reply) {
  TILEWIRE_RETURN_IF_ERROR(CheckSpec(response.result().spec(), spec.result));
  const std::string& data = response.result().data();
  if (data.size() != static_cast<size_t>(spec.result.bytes()))
    return BadReply("the result has " + std::to_string(data.size()) + " bytes, expected " +
                    std::to_string(spec.result.bytes()));
  TILEWIRE_RETURN_IF_ERROR(spec.sink(0, {reinterpret_cast<const uint8_t*>(data.data()), data.size()}));
  *reply = {.spec = spec.result,
            .numeric_version = response.numeric_version(),
            .timing = FromProto(response.timing())};
  return {};
}

/// Sends `request`, whose operation and operands are set, by `method` of the stub.
template <typename Request, typename Response>
void SendUnary(v1::Kernels::Stub* stub,
               grpc::Status (v1::Kernels::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
               const Request& request, const CallSpec& spec, Attempt* attempt) {
  grpc::ClientContext context;
  Prepare(spec.options, spec.deadline, &context);
  const std::stop_callback on_stop(spec.options.stop, [&context] { context.TryCancel(); });
  Response response;
  SpanRecorder* const recorder = spec.recorder;
  const double sent = recorder ? recorder->Now() : 0;
  attempt->status = FromGrpc((stub->*method)(&context, request, &response), context);
  const double came = recorder ? recorder->Now() : 0;
  if (!attempt->status.ok()) return;
  attempt->status = TakeUnary(response, spec, &attempt->reply);
  if (!recorder) return;
  const auto bytes = static_cast<uint64_t>(spec.result.bytes());
  recorder->Add({.stage = ClientStage::kExchange,
                 .begin_us = sent,
                 .end_us = came,
                 .bytes = attempt->reply.timing.bytes_in + bytes});
  recorder->Add({.stage = ClientStage::kSink, .begin_us = came, .end_us = recorder->Now(), .bytes = bytes});
}

}  // namespace

Attempt UnaryCall(v1::Kernels::Stub* stub, const CallSpec& spec) {
  using Stub = v1::Kernels::Stub;
  // `anything_sent` stays false: computing again changes nothing, so an unanswered call may be repeated.
  Attempt attempt;
  if (const auto* rmse = std::get_if<RmseOp>(&spec.operation)) {
    v1::RmseRequest request;
    ToProto(*rmse, request.mutable_op());
    SetOptions(spec.options, request.mutable_options());
    FillOperand(spec.sources[0], request.mutable_a());
    FillOperand(spec.sources[1], request.mutable_b());
    SendUnary(stub, &Stub::Rmse, request, spec, &attempt);
  } else if (const auto* gaussian = std::get_if<GaussianOp>(&spec.operation)) {
    v1::GaussianPdfRequest request;
    ToProto(*gaussian, request.mutable_op());
    SetOptions(spec.options, request.mutable_options());
    FillOperand(spec.sources[0], request.mutable_input());
    SendUnary(stub, &Stub::GaussianPdf, request, spec, &attempt);
  } else {
    v1::TransposeRequest request;
    ToProto(std::get<TransposeOp>(spec.operation), request.mutable_op());
    SetOptions(spec.options, request.mutable_options());
    FillOperand(spec.sources[0], request.mutable_input());
    SendUnary(stub, &Stub::Transpose, request, spec, &attempt);
  }
  return attempt;
}

}  // namespace tilewire::client
