#include "server/rpc/calls/unary.h"

#include <array>

#include "server/base/limits.h"
#include "server/rpc/calls/feed.h"
#include "server/rpc/calls/helping.h"
#include "server/rpc/conversions/convert.h"
#include "server/rpc/conversions/references.h"
#include "server/rpc/conversions/status.h"
#include "server/rpc/transport/caught.h"

namespace tilewire::rpc {
namespace {

// Room for everything of a reply but the array: spec, version, timing; and for spans when they are wanted.
constexpr int64_t kReplyOverhead = 4 * kKiB, kTraceOverhead = 256 * kKiB;

// Small replies are never refused: they bind less than the connection that waits for them.
constexpr int64_t kAlwaysHeldBytes = 64 * kKiB;

struct Request {
  std::unique_ptr<engine::Operation> operation;
  wire::UnaryView view;
  engine::JobOptions options;
  References references;
};

Status CheckData(const wire::UnaryView::Payload& payload, const ArraySpec& spec, const std::string& field) {
  if (payload.data_bytes == static_cast<uint64_t>(spec.bytes())) return {};
  return BadValue(field + ".data", std::to_string(payload.data_bytes) + " bytes long",
                  std::to_string(spec.bytes()) + " bytes, as its dtype and shape say")
      .value();
}

/// What the next operand of the request is: bytes that came, a resident array, or bytes of a region.
Result<ArraySpec> TakeOperand(const v1::Operand& operand, const std::string& field, Finder* finder,
                              Request* request) {
  engine::ArrayUse& resident = request->references.arrays.emplace_back();
  engine::RegionPart& part = request->references.regions.emplace_back();
  const bool in_region = operand.has_region(), stored = !operand.array().empty();
  if (!stored && !in_region) return FromProto(operand.spec(), field + ".spec");
  if (stored && in_region) return BadValue(field, "an array and a region", "one of them");
  const uint64_t bytes = request->view.operands[request->references.arrays.size() - 1].data_bytes;
  if (bytes > 0)
    return BadValue(field + ".data", std::to_string(bytes) + " bytes long",
                    stored ? "nothing beside the array's id" : "nothing beside the place in a region");
  if (in_region) {
    TILEWIRE_ASSIGN_OR_RETURN(part, finder->Place(operand.region(), field + ".region"));
    return FromProto(operand.spec(), field + ".spec");
  }
  TILEWIRE_ASSIGN_OR_RETURN(resident, finder->Array(operand.array(), field + ".array"));
  return ResidentSpec(operand.spec(), *resident, field + ".spec");
}

/// The rest of a request whose operands were taken and whose operation was made.
Status Finish(const v1::Options& options, std::span<const std::string_view> fields, Finder* finder,
              Request* request) {
  for (size_t i = 0; i < fields.size(); ++i)
    if (request->references.sent(i))
      TILEWIRE_RETURN_IF_ERROR(
          CheckData(request->view.operands[i], request->operation->operands()[i], std::string(fields[i])));
  TILEWIRE_ASSIGN_OR_RETURN(request->options, JobOptionsOf(options));
  // Operands that are sent come one after the other, which no window could bear.
  request->options.may_window = !request->references.any_sent();
  return Complete(options, std::move(request->references), finder, &request->options);
}

Status CheckSizes(const Request& request) {
  const int64_t room = kMaxUnaryBytes - kReplyOverhead - (request.options.trace ? kTraceOverhead : 0);
  const int64_t bytes = request.operation->result().bytes();
  if (bytes <= room || request.options.store || request.options.result_region) return {};
  return Status({.code = Code::kResourceExhausted,
                 .reason = "USE_EXECUTE",
                 .message = "the reply would carry " + std::to_string(bytes) +
                            " bytes; a unary reply carries at most " + std::to_string(room) +
                            "; call Execute",
                 .field = "result",
                 .value = std::to_string(bytes),
                 .allowed = std::to_string(room)});
}

template <typename Proto>
Result<Proto> ParseHeader(const Received& message, std::span<const int> operand_fields,
                          wire::UnaryView* view) {
  if (message.bytes() > static_cast<size_t>(kMaxUnaryBytes))
    return OverLimit("request", std::to_string(message.bytes()) + " bytes",
                     std::to_string(kMaxUnaryBytes) + "; larger arrays go through Execute");
  TILEWIRE_ASSIGN_OR_RETURN(*view, wire::SplitUnary(message.pieces(), operand_fields));
  if (view->header.size() > static_cast<size_t>(kMaxHeaderBytes))
    return OverLimit("request without operand data", std::to_string(view->header.size()) + " bytes",
                     std::to_string(kMaxHeaderBytes));
  Proto proto;
  if (!proto.ParseFromString(view->header))
    return Fail(Status(Code::kInvalidArgument, "BAD_MESSAGE", "the request is no " + proto.GetTypeName()));
  view->header = std::string();  // parsed; not to be kept while the call waits
  return proto;
}

Result<Request> ParseRmse(const Received& message, Finder* finder) {
  static constexpr int kOperands[] = {v1::RmseRequest::kAFieldNumber, v1::RmseRequest::kBFieldNumber};
  Request request;
  TILEWIRE_ASSIGN_OR_RETURN(const auto proto,
                            ParseHeader<v1::RmseRequest>(message, kOperands, &request.view));
  TILEWIRE_ASSIGN_OR_RETURN(const ArraySpec a, TakeOperand(proto.a(), "a", finder, &request));
  TILEWIRE_ASSIGN_OR_RETURN(const ArraySpec b, TakeOperand(proto.b(), "b", finder, &request));
  TILEWIRE_ASSIGN_OR_RETURN(request.operation, RmseOperation(a, b, proto.op()));
  TILEWIRE_RETURN_IF_ERROR(
      Finish(proto.options(), std::array<std::string_view, 2>{"a", "b"}, finder, &request));
  return request;
}

Result<Request> ParseTranspose(const Received& message, Finder* finder) {
  static constexpr int kOperands[] = {v1::TransposeRequest::kInputFieldNumber};
  Request request;
  TILEWIRE_ASSIGN_OR_RETURN(const auto proto,
                            ParseHeader<v1::TransposeRequest>(message, kOperands, &request.view));
  TILEWIRE_ASSIGN_OR_RETURN(const ArraySpec input, TakeOperand(proto.input(), "input", finder, &request));
  TILEWIRE_ASSIGN_OR_RETURN(request.operation, TransposeOperation(input, proto.op()));
  TILEWIRE_RETURN_IF_ERROR(
      Finish(proto.options(), std::array<std::string_view, 1>{"input"}, finder, &request));
  return request;
}

Result<Request> ParseGaussianPdf(const Received& message, Finder* finder) {
  static constexpr int kOperands[] = {v1::GaussianPdfRequest::kInputFieldNumber};
  Request request;
  TILEWIRE_ASSIGN_OR_RETURN(const auto proto,
                            ParseHeader<v1::GaussianPdfRequest>(message, kOperands, &request.view));
  TILEWIRE_ASSIGN_OR_RETURN(const ArraySpec input, TakeOperand(proto.input(), "input", finder, &request));
  if (!proto.has_op()) return BadValue("op", "not set", "a GaussianOp: mean and stddev");
  TILEWIRE_ASSIGN_OR_RETURN(request.operation, GaussianOperation(input, proto.op()));
  TILEWIRE_RETURN_IF_ERROR(
      Finish(proto.options(), std::array<std::string_view, 1>{"input"}, finder, &request));
  return request;
}

// The replies have the same fields: result 1 {spec 1, data 15}, numeric_version 2, timing 3.
/// Everything before the array's bytes.
std::string ReplyHeader(const engine::Operation& operation) {
  static_assert(int{v1::RmseResponse::kResultFieldNumber} == int{v1::TransposeResponse::kResultFieldNumber});
  static_assert(int{v1::RmseResponse::kResultFieldNumber} ==
                int{v1::GaussianPdfResponse::kResultFieldNumber});
  const auto bytes = static_cast<uint64_t>(operation.result().bytes());
  v1::ArrayResult result;
  ToProto(operation.result(), result.mutable_spec());
  const std::string spec = result.SerializeAsString();
  std::string header;
  wire::AppendLengthPrefix(
      &header, v1::RmseResponse::kResultFieldNumber,
      spec.size() + wire::LengthPrefixBytes(v1::ArrayResult::kDataFieldNumber, bytes) + bytes);
  header += spec;
  wire::AppendLengthPrefix(&header, v1::ArrayResult::kDataFieldNumber, bytes);
  return header;
}

/// Everything after them; all of it where the result is not in the reply.
std::string ReplyTail(const engine::Job& job) {
  static_assert(int{v1::RmseResponse::kTimingFieldNumber} == int{v1::TransposeResponse::kTimingFieldNumber});
  static_assert(int{v1::RmseResponse::kTimingFieldNumber} ==
                int{v1::GaussianPdfResponse::kTimingFieldNumber});
  v1::RmseResponse tail;
  if (!job.hands_out()) DescribeResult(job, tail.mutable_result());
  tail.set_numeric_version(std::string(job.operation().numeric_version()));
  ToProto(job.timing(), tail.mutable_timing());
  return tail.SerializeAsString();
}

Result<Request> ParseWith(Result<Request> (*parse)(const Received&, Finder*), const Received& message,
                          UnaryCall& call) {
  Finder finder = call.finder();
  return parse(message, &finder);
}

/// Brings the bytes of every operand that was sent.
QueueTask<Status> FeedAll(UnaryCall& call, std::shared_ptr<engine::Job> job, const wire::UnaryView& view) {
  if (!job->takes_input()) co_return Status();
  engine::Intake intake(job);
  for (uint32_t i = 0; i < view.operands.size(); ++i) {
    if (!job->streamed(i)) continue;
    const Status fed = co_await Feed(call, *job, intake, i, 0, view.operands[i].data);
    if (!fed.ok()) co_return fed;
  }
  co_return Status();
}

Task<Status> ServeKernel(UnaryCall& call, Result<Request> (*parse)(const Received&, Finder*),
                         grpc::ByteBuffer* reply) {
  Received message;
  if (Status status = message.Take(&call.request); !status.ok()) co_return status;
  auto request = ParseWith(parse, message, call);
  if (!request) co_return request.error();
  if (Status status = CheckSizes(*request); !status.ok()) co_return status;

  if (Status status = call.holding.Reach(static_cast<int64_t>(message.bytes())); !status.ok())
    co_return status;
  request->options.helped = true;
  auto opened = co_await call.OpenJob(std::move(request->operation), std::move(request->options));
  if (!opened) co_return opened.error();
  const std::shared_ptr<engine::Job> job = *opened;
  Helping helping(job);
  if (Status fed = co_await FeedAll(call, job, request->view); !fed.ok()) {
    job->Fail(fed);
    co_return fed;
  }
  message.Clear();
  call.holding.Release();
  // Held until the client took it.
  const int64_t reply_bytes = job->hands_out() ? job->operation().result().bytes() : 0;
  if (reply_bytes <= kAlwaysHeldBytes) {
    call.holding.Admit(reply_bytes);
  } else if (Status status = call.holding.Reach(reply_bytes); !status.ok()) {
    job->Fail(status);
    co_return status;
  }
  job->InputEnded();
  helping.Now();
  Message answer;
  if (job->hands_out()) answer.AddCopy(ReplyHeader(job->operation()));
  for (;;) {
    auto piece = co_await OnAnyThread<Result<std::optional<engine::OutputPiece>>>(
        [&](auto resume) { job->NextOutput(std::move(resume)); });
    if (!piece) co_return piece.error();
    if (!*piece) break;
    // Copied, so that a client that takes its reply slowly holds none of the job's memory, and no place in
    // flight; and dropped at once, because the next piece may need its buffer.
    answer.AddCopy((*piece)->data, (*piece)->bytes);
    job->CountCopied((*piece)->bytes);
  }
  answer.AddCopy(ReplyTail(*job));
  *reply = answer.Build();
  co_return Status();
}

}  // namespace

Task<Status> ServeRmse(UnaryCall& call, grpc::ByteBuffer* reply) {
  return ServeKernel(call, &ParseRmse, reply);
}

Task<Status> ServeTranspose(UnaryCall& call, grpc::ByteBuffer* reply) {
  return ServeKernel(call, &ParseTranspose, reply);
}

Task<Status> ServeGaussianPdf(UnaryCall& call, grpc::ByteBuffer* reply) {
  return ServeKernel(call, &ParseGaussianPdf, reply);
}

Detached RunUnary(std::shared_ptr<UnaryCall> call, UnaryHandler handler) {
  grpc::ByteBuffer reply;
  const Status served = co_await Caught([&] { return handler(*call, &reply); });
  call->request.Clear();
  const Status status = call->FinalStatus(served);
  call->Ended(status);
  call->DropJob();
  call->StartIdleWatch();
  call->idle_watch().writing = true;
  co_await Operation([&](void* tag) {
    if (status.ok()) {
      call->responder.Finish(reply, grpc::Status::OK, tag);
    } else {
      call->responder.FinishWithError(ToGrpc(status), tag);
    }
  });
}

}  // namespace tilewire::rpc
