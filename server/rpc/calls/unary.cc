#include "server/rpc/calls/unary.h"

#include <exception>
#include <vector>

#include "server/base/limits.h"
#include "server/rpc/conversions/convert.h"
#include "server/rpc/conversions/operations.h"
#include "server/rpc/conversions/references.h"
#include "server/rpc/conversions/status.h"
#include "server/rpc/transport/awaited.h"

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

Status CheckSizes(const Request& request) {
  const int64_t room = kMaxUnaryBytes - kReplyOverhead - (request.options.trace ? kTraceOverhead : 0);
  const int64_t bytes = request.operation->result_bytes();
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

Status CheckMessage(const Received& message) {
  if (message.bytes() <= static_cast<size_t>(kMaxUnaryBytes)) return {};
  return OverLimit("request", std::to_string(message.bytes()) + " bytes",
                   std::to_string(kMaxUnaryBytes) + "; larger arrays go through Execute")
      .value();
}

/// What is left of a request without the bytes of its operands.
template <typename Proto>
Result<Proto> ParseHeader(wire::UnaryView* view) {
  if (view->header.size() > static_cast<size_t>(kMaxHeaderBytes))
    return OverLimit("request without operand data", std::to_string(view->header.size()) + " bytes",
                     std::to_string(kMaxHeaderBytes));
  Proto proto;
  if (!proto.ParseFromString(view->header))
    return Fail(Status(Code::kInvalidArgument, "BAD_MESSAGE", "the request is no " + proto.GetTypeName()));
  view->header = std::string();  // parsed; not to be kept while the call waits
  return proto;
}

/// An operand of a request, and its name for people.
struct NamedOperand {
  const v1::Operand& operand;
  std::string name;
};

/// A request for `operation`, from whatever message it came in.
Result<Request> MakeRequest(wire::UnaryView view, const v1::Operation& operation,
                            std::span<const NamedOperand> operands, const v1::Options& options,
                            Finder* finder) {
  Request request;
  request.view = std::move(view);
  std::vector<ArraySpec> specs;
  for (const auto& [operand, name] : operands) {
    TILEWIRE_ASSIGN_OR_RETURN(specs.emplace_back(), TakeOperand(operand, name, finder, &request));
  }
  TILEWIRE_ASSIGN_OR_RETURN(request.operation, OperationOf(operation, specs));
  for (size_t i = 0; i < operands.size(); ++i)
    if (request.references.sent(i))
      TILEWIRE_RETURN_IF_ERROR(
          CheckData(request.view.operands[i], request.operation->operands()[i], operands[i].name));
  TILEWIRE_ASSIGN_OR_RETURN(request.options, JobOptionsOf(options));
  // Operands that are sent come one after the other, which no window could bear.
  request.options.may_window = !request.references.any_sent();
  TILEWIRE_RETURN_IF_ERROR(Complete(options, std::move(request.references), finder, &request.options));
  return request;
}

Result<Request> ParseRmse(const Received& message, Finder* finder) {
  static constexpr int kOperands[] = {v1::RmseRequest::kAFieldNumber, v1::RmseRequest::kBFieldNumber};
  TILEWIRE_ASSIGN_OR_RETURN(auto view, wire::SplitUnary(message.pieces(), kOperands));
  TILEWIRE_ASSIGN_OR_RETURN(auto proto, ParseHeader<v1::RmseRequest>(&view));
  v1::Operation operation;
  operation.mutable_rmse()->Swap(proto.mutable_op());
  const NamedOperand operands[] = {{proto.a(), "a"}, {proto.b(), "b"}};
  return MakeRequest(std::move(view), operation, operands, proto.options(), finder);
}

Result<Request> ParseTranspose(const Received& message, Finder* finder) {
  static constexpr int kOperands[] = {v1::TransposeRequest::kInputFieldNumber};
  TILEWIRE_ASSIGN_OR_RETURN(auto view, wire::SplitUnary(message.pieces(), kOperands));
  TILEWIRE_ASSIGN_OR_RETURN(auto proto, ParseHeader<v1::TransposeRequest>(&view));
  v1::Operation operation;
  operation.mutable_transpose()->Swap(proto.mutable_op());
  const NamedOperand operands[] = {{proto.input(), "input"}};
  return MakeRequest(std::move(view), operation, operands, proto.options(), finder);
}

Result<Request> ParseGaussianPdf(const Received& message, Finder* finder) {
  static constexpr int kOperands[] = {v1::GaussianPdfRequest::kInputFieldNumber};
  TILEWIRE_ASSIGN_OR_RETURN(auto view, wire::SplitUnary(message.pieces(), kOperands));
  TILEWIRE_ASSIGN_OR_RETURN(auto proto, ParseHeader<v1::GaussianPdfRequest>(&view));
  if (!proto.has_op()) return BadValue("op", "not set", "a GaussianOp: mean and stddev");
  v1::Operation operation;
  operation.mutable_gaussian_pdf()->Swap(proto.mutable_op());
  const NamedOperand operands[] = {{proto.input(), "input"}};
  return MakeRequest(std::move(view), operation, operands, proto.options(), finder);
}

Result<Request> ParseCompute(const Received& message, Finder* finder) {
  TILEWIRE_ASSIGN_OR_RETURN(
      auto view,
      wire::SplitRepeated(message.pieces(), v1::ComputeRequest::kOperandsFieldNumber, kMaxOperands));
  TILEWIRE_ASSIGN_OR_RETURN(const auto proto, ParseHeader<v1::ComputeRequest>(&view));
  const size_t wanted = OperandCount(proto.operation());
  if (wanted == 0) return Fail(NoOperation("operation", OperationNames()));
  if (static_cast<size_t>(proto.operands_size()) != wanted)
    return Fail(WrongCount("operands", proto.operands_size(), wanted));
  std::vector<NamedOperand> operands;
  for (int i = 0; i < proto.operands_size(); ++i)
    operands.push_back({proto.operands(i), "operands[" + std::to_string(i) + "]"});
  return MakeRequest(std::move(view), proto.operation(), operands, proto.options(), finder);
}

// The replies have the same fields: result or results 1 {spec 1, data 15}, numeric_version 2, timing 3.
static_assert(int{v1::RmseResponse::kResultFieldNumber} == int{v1::TransposeResponse::kResultFieldNumber});
static_assert(int{v1::RmseResponse::kResultFieldNumber} == int{v1::GaussianPdfResponse::kResultFieldNumber});
static_assert(int{v1::RmseResponse::kResultFieldNumber} == int{v1::ComputeResponse::kResultsFieldNumber});
static_assert(int{v1::RmseResponse::kTimingFieldNumber} == int{v1::TransposeResponse::kTimingFieldNumber});
static_assert(int{v1::RmseResponse::kTimingFieldNumber} == int{v1::GaussianPdfResponse::kTimingFieldNumber});
static_assert(int{v1::RmseResponse::kTimingFieldNumber} == int{v1::ComputeResponse::kTimingFieldNumber});
/// Everything before the array's bytes.
std::string ReplyHeader(const engine::Operation& operation) {
  const auto bytes = static_cast<uint64_t>(operation.result_bytes());
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
  v1::RmseResponse tail;
  if (!job.hands_out()) DescribeResult(job, tail.mutable_result());
  tail.set_numeric_version(std::string(job.operation().numeric_version()));
  ToProto(job.timing(), tail.mutable_timing());
  return tail.SerializeAsString();
}

Result<Request> ParseWith(Result<Request> (*parse)(const Received&, Finder*), const Received& message,
                          UnaryCall& call) {
  TILEWIRE_RETURN_IF_ERROR(CheckMessage(message));
  Finder finder(&call.engine(), call.record().identity);
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

/// What was submitted without waking anybody is served at the latest when this goes.
class Helping {
 public:
  explicit Helping(std::shared_ptr<engine::Job> job) : job_(std::move(job)) {}
  ~Helping() {
    if (job_) job_->Help();
  }
  Helping(const Helping&) = delete;
  Helping& operator=(const Helping&) = delete;
  /// Once. Where kernels take longer than this thread's other calls can wait, it looks after them in between.
  void Now() {
    const auto job = std::exchange(job_, nullptr);
    if (job->awaited()) {
      Awaited::OfThisThread().Keep(job);
    } else {
      job->Help();
    }
  }

 private:
  std::shared_ptr<engine::Job> job_;
};

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
  const int64_t reply_bytes = job->hands_out() ? job->operation().result_bytes() : 0;
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

Task<Status> ServeCompute(UnaryCall& call, grpc::ByteBuffer* reply) {
  return ServeKernel(call, &ParseCompute, reply);
}

Detached RunUnary(std::shared_ptr<UnaryCall> call, UnaryHandler handler) {
  grpc::ByteBuffer reply;
  Status status;
  try {
    status = co_await handler(*call, &reply);
  } catch (const std::exception& e) {
    status = Bug(&e);
  } catch (...) {
    status = Bug(nullptr);
  }
  call->request.Clear();
  status = call->FinalStatus(status);
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
