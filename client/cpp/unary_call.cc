#include "client/cpp/unary_call.h"

#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/rpc_method.h>

#include "client/cpp/convert.h"
#include "client/cpp/wire_form.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::client {
namespace {

uint64_t DataBytes(const v1::ComputeResponse& response) {
  uint64_t bytes = 0;
  for (const v1::ArrayResult& result : response.results()) bytes += result.data().size();
  return bytes;
}

Status TakeReply(const v1::ComputeResponse& response, const CallSpec& spec, Reply* reply) {
  *reply = {.numeric_version = response.numeric_version(), .timing = FromProto(response.timing())};
  TILEWIRE_RETURN_IF_ERROR(TakeResults(response.results(), spec, reply));
  for (size_t k = 0; k < reply->specs.size(); ++k) {
    const std::string& data = response.results(static_cast<int>(k)).data();
    const size_t expected = !spec.sends_result() ? 0 : static_cast<size_t>(reply->specs[k].bytes());
    if (data.size() != expected)
      return BadReply("the result has " + std::to_string(data.size()) + " bytes, expected " +
                      std::to_string(expected));
  }
  for (size_t k = 0; k < reply->specs.size() && spec.sends_result(); ++k) {
    const std::string& data = response.results(static_cast<int>(k)).data();
    TILEWIRE_RETURN_IF_ERROR(spec.sink(k, 0, {reinterpret_cast<const uint8_t*>(data.data()), data.size()}));
  }
  return {};
}

/// What generated stubs do, for requests whose type is not known here.
grpc::Status Send(grpc::Channel* channel, grpc::ClientContext* context, const UnaryRequest& request,
                  v1::ComputeResponse* response) {
  using google::protobuf::MessageLite;
  const grpc::internal::RpcMethod method(request.method.c_str(), grpc::internal::RpcMethod::NORMAL_RPC);
  const MessageLite& message = *request.message;
  MessageLite* const reply = response;
  return grpc::internal::BlockingUnaryCall(channel, method, context, message, reply);
}

}  // namespace

Attempt UnaryCall(grpc::Channel* channel, const CallSpec& spec) {
  // Operands that were sent do not count as moved: computing again changes nothing, and storing again
  // neither, because of the key, so an unanswered call may be repeated.
  Attempt attempt;
  const UnaryRequest request = MakeUnaryRequest(spec);
  grpc::ClientContext context;
  Prepare(spec.connect, spec.options, spec.deadline, &context);
  const std::stop_callback on_stop(spec.options.stop, [&context] { context.TryCancel(); });
  v1::ComputeResponse response;
  SpanRecorder* const recorder = spec.recorder;
  const double sent = recorder ? recorder->Now() : 0;
  attempt.status = FromGrpc(Send(channel, &context, request, &response), context);
  const double came = recorder ? recorder->Now() : 0;
  if (!attempt.status.ok()) return attempt;
  const uint64_t bytes = DataBytes(response);
  if (bytes > 0) attempt.moved = Moved::kResults;  // to the sink, which may refuse it
  attempt.status = TakeReply(response, spec, &attempt.reply);
  if (!recorder) return attempt;
  recorder->Add({.stage = ClientStage::kExchange,
                 .begin_us = sent,
                 .end_us = came,
                 .bytes = attempt.reply.timing.bytes_in + bytes});
  recorder->Add({.stage = ClientStage::kSink, .begin_us = came, .end_us = recorder->Now(), .bytes = bytes});
  return attempt;
}

}  // namespace tilewire::client
