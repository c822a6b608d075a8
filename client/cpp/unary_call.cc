#include "client/cpp/unary_call.h"

#include "client/cpp/convert.h"
#include "client/cpp/request.h"

namespace tilewire::client {
namespace {

/// The reply of a unary call: all response messages have the same fields.
template <typename Response>
Status TakeUnary(const Response& response, const CallSpec& spec, Reply* reply) {
  *reply = {.numeric_version = response.numeric_version(), .timing = FromProto(response.timing())};
  TILEWIRE_RETURN_IF_ERROR(TakeResult(response.result(), spec, reply));
  const std::string& data = response.result().data();
  const size_t expected = !spec.sends_result() ? 0 : static_cast<size_t>(reply->spec.bytes());
  if (data.size() != expected)
    return BadReply("the result has " + std::to_string(data.size()) + " bytes, expected " +
                    std::to_string(expected));
  if (data.empty()) return {};
  return spec.sink(0, {reinterpret_cast<const uint8_t*>(data.data()), data.size()});
}

/// Sends `request`, whose operation and operands are set, by `method` of the stub.
template <typename Request, typename Response>
void SendUnary(v1::Kernels::Stub* stub,
               grpc::Status (v1::Kernels::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
               const Request& request, const CallSpec& spec, Attempt* attempt) {
  grpc::ClientContext context;
  Prepare(spec.connect, spec.options, spec.deadline, &context);
  const std::stop_callback on_stop(spec.options.stop, [&context] { context.TryCancel(); });
  Response response;
  SpanRecorder* const recorder = spec.recorder;
  const double sent = recorder ? recorder->Now() : 0;
  attempt->status = FromGrpc((stub->*method)(&context, request, &response), context);
  const double came = recorder ? recorder->Now() : 0;
  if (!attempt->status.ok()) return;
  attempt->anything_moved = !response.result().data().empty();  // to the sink, which may refuse it
  attempt->status = TakeUnary(response, spec, &attempt->reply);
  if (!recorder) return;
  const uint64_t bytes = response.result().data().size();
  recorder->Add({.stage = ClientStage::kExchange,
                 .begin_us = sent,
                 .end_us = came,
                 .bytes = attempt->reply.timing.bytes_in + bytes});
  recorder->Add({.stage = ClientStage::kSink, .begin_us = came, .end_us = recorder->Now(), .bytes = bytes});
}

}  // namespace

Attempt UnaryCall(v1::Kernels::Stub* stub, const CallSpec& spec) {
  using Stub = v1::Kernels::Stub;
  // Operands that were sent do not count as moved: computing again changes nothing, and storing again
  // neither, because of the key, so an unanswered call may be repeated.
  Attempt attempt;
  const Operation& operation = std::get<Operation>(spec.task);
  if (const auto* rmse = std::get_if<RmseOp>(&operation)) {
    v1::RmseRequest request;
    ToProto(*rmse, request.mutable_op());
    SetOptions(spec, request.mutable_options());
    FillOperand(spec.sources[0], request.mutable_a());
    FillOperand(spec.sources[1], request.mutable_b());
    SendUnary(stub, &Stub::Rmse, request, spec, &attempt);
  } else if (const auto* gaussian = std::get_if<GaussianOp>(&operation)) {
    v1::GaussianPdfRequest request;
    ToProto(*gaussian, request.mutable_op());
    SetOptions(spec, request.mutable_options());
    FillOperand(spec.sources[0], request.mutable_input());
    SendUnary(stub, &Stub::GaussianPdf, request, spec, &attempt);
  } else {
    v1::TransposeRequest request;
    ToProto(std::get<TransposeOp>(operation), request.mutable_op());
    SetOptions(spec, request.mutable_options());
    FillOperand(spec.sources[0], request.mutable_input());
    SendUnary(stub, &Stub::Transpose, request, spec, &attempt);
  }
  return attempt;
}

}  // namespace tilewire::client
