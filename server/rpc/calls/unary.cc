#include "server/rpc/calls/unary.h"

#include <algorithm>
#include <utility>

#include "server/base/limits.h"
#include "server/rpc/calls/feed.h"
#include "server/rpc/calls/helping.h"
#include "server/rpc/calls/unary_request.h"
#include "server/rpc/conversions/convert.h"
#include "server/rpc/conversions/status.h"
#include "server/rpc/transport/caught.h"
#include "server/rpc/transport/crew.h"

namespace tilewire::rpc {
namespace {

// Small replies are never refused: they bind less than the connection that waits for them.
constexpr int64_t kAlwaysHeldBytes = 64 * kKiB;
// A message that is copied while others hardly notice.
constexpr size_t kQuicklyTakenBytes = 64 << 10;

// The replies have the same fields: result or results 1 {spec 1, data 15}, numeric_version 2, timing 3.
static_assert(int{v1::RmseResponse::kResultFieldNumber} == int{v1::TransposeResponse::kResultFieldNumber});
static_assert(int{v1::RmseResponse::kResultFieldNumber} == int{v1::GaussianPdfResponse::kResultFieldNumber});
static_assert(int{v1::RmseResponse::kResultFieldNumber} == int{v1::ComputeResponse::kResultsFieldNumber});
static_assert(int{v1::RmseResponse::kNumericVersionFieldNumber} ==
              int{v1::ComputeResponse::kNumericVersionFieldNumber});
static_assert(int{v1::RmseResponse::kTimingFieldNumber} == int{v1::TransposeResponse::kTimingFieldNumber});
static_assert(int{v1::RmseResponse::kTimingFieldNumber} == int{v1::GaussianPdfResponse::kTimingFieldNumber});
static_assert(int{v1::RmseResponse::kTimingFieldNumber} == int{v1::ComputeResponse::kTimingFieldNumber});
/// Everything between the array's bytes and those of the result before it.
std::string ReplyHeader(const ArraySpec& array) {
  const auto bytes = static_cast<uint64_t>(array.bytes());
  thread_local v1::ArrayResult result;  // keeps what it has allocated
  result.Clear();
  ToProto(array, result.mutable_spec());
  const std::string spec = result.SerializeAsString();
  std::string header;
  wire::AppendLengthPrefix(
      &header, v1::RmseResponse::kResultFieldNumber,
      spec.size() + wire::LengthPrefixBytes(v1::ArrayResult::kDataFieldNumber, bytes) + bytes);
  header += spec;
  wire::AppendLengthPrefix(&header, v1::ArrayResult::kDataFieldNumber, bytes);
  return header;
}

/// Everything after the last one's; all of it where results are not in the reply.
std::string ReplyTail(UnaryCall& call, const engine::Job& job) {
  thread_local v1::ComputeResponse tail;  // likewise
  tail.Clear();
  for (size_t i = 0; !job.hands_out() && i < job.operation().results().size(); ++i)
    DescribeResult(job, i, tail.add_results());
  tail.set_numeric_version(std::string(job.operation().numeric_version()));
  call.told = call.TimingOf(job);
  ToProto(*call.told, tail.mutable_timing());
  return tail.SerializeAsString();
}

Status Gone() {
  return Status(Code::kCancelled, "CANCELLED", "the client is gone");
}

Result<UnaryRequest> ParseWith(ParseUnary* parse, const Received& message, UnaryCall& call) {
  TILEWIRE_RETURN_IF_ERROR(CheckMessage(message));
  Finder finder = call.finder();
  return parse(message, &finder);
}

/// Brings the bytes of every operand that was sent.
QueueTask<Status> FeedAll(UnaryCall& call, std::shared_ptr<engine::Job> job, const wire::UnaryView& view) {
  if (!job->takes_input()) co_return Status();
  engine::Intake intake(job);
  for (uint32_t i = 0; i < view.operands.size(); ++i) {
    if (!job->streamed(i)) continue;
    const engine::Intake::Chunk part{.operand = i, .slices = view.operands[i].data};
    const auto taken = intake.Take(part);
    if (!taken) co_return taken.error();
    if (!*taken)
      if (Status fed = co_await FeedOn(call, intake); !fed.ok()) co_return fed;
  }
  co_return Status();
}

/// Memory for these may have to be made first, which takes long; but not for operands that lie at the device.
/// Whose operands all do, and who leaves a few values, is waited for beside the queue (Awaited).
int64_t BytesToPlace(const UnaryRequest& request) {
  const auto operands = request.operation->operands();
  const auto& residents = request.options.residents;
  int64_t bytes = request.operation->result_bytes();
  for (size_t i = 0; i < operands.size(); ++i)
    if (i >= residents.size() || !residents[i]) bytes += operands[i].bytes();
  return bytes;
}

/// What is sent tells already that a job is no small one; the others are taken for small until they are read.
JobClass SentClass(const UnaryCall& call) {
  return call.request.Length() > static_cast<size_t>(kSmallJobBytes + kMaxHeaderBytes) ? JobClass::kBulk
                                                                                       : JobClass::kSmall;
}

Task<Status> ServeKernel(UnaryCall& call, ParseUnary* parse, grpc::ByteBuffer* reply) {
  if (Status status = call.Comes(SentClass(call)); !status.ok()) co_return status;
  if (Crew::IsBehind()) {
    co_await Crew::Turn(call.account().get());
    if (call.cancelled()) co_return Gone();
    if (Status status = call.HeldBack(); !status.ok()) co_return status;
  }
  if (Status status = call.IsOld(); !status.ok()) co_return status;
  const std::string& share = call.share();
  if (SentClass(call) == JobClass::kBulk)
    if (Status status = call.RefusedLate(JobClass::kBulk, share); !status.ok()) co_return status;
  Received message;
  if (Status status = message.Take(&call.request); !status.ok()) co_return status;
  auto request = ParseWith(parse, message, call);
  if (!request) co_return request.error();
  if (Status status = CheckSizes(*request); !status.ok()) co_return status;

  // A small reply with it: later nobody refuses that one, and many may come of requests of a few bytes.
  const int64_t held = std::max(static_cast<int64_t>(message.bytes()),
                                std::min(request->operation->payload_bytes(), kAlwaysHeldBytes));
  if (Status status = call.holding.Reach(held); !status.ok()) co_return status;
  request->options.helped = true;
  const JobClass job_class = ClassOf(*request->operation);
  if (BytesToPlace(*request) > kSmallJobBytes) Crew::StaysBusy();
  if (Status status = call.Comes(job_class); !status.ok()) co_return status;
  if (Status status = call.RefusedLate(job_class, share); !status.ok()) co_return status;
  Backlog::Place place(&call.backlog(), job_class, share, call.engine().timer().Now());
  auto opened = co_await call.OpenJob(std::move(request->operation), std::move(request->options));
  if (!opened) {
    call.FoundNoPlace(opened.error());
    co_return std::move(opened).error();
  }
  place.Admitted(call.engine().timer().Now());
  call.Begins();
  const std::shared_ptr<engine::Job> job = *opened;
  Helping helping(job);
  if (Status fed = co_await FeedAll(call, job, request->view); !fed.ok()) {
    job->Fail(fed);
    co_return fed;
  }
  message.Clear();
  call.holding.Release();
  // Held until the client took it.
  const int64_t reply_bytes = job->hands_out() ? job->operation().payload_bytes() : 0;
  if (reply_bytes <= kAlwaysHeldBytes) {
    call.holding.Admit(reply_bytes);
  } else if (Status status = call.holding.Reach(reply_bytes); !status.ok()) {
    job->Fail(status);
    co_return status;
  }
  job->InputEnded();
  helping.Now();
  Message answer;
  for (;;) {
    auto piece = co_await OnAnyThread<Result<std::optional<engine::OutputPiece>>>(
        [&](auto resume) { job->NextOutput(std::move(resume)); });
    if (!piece) co_return piece.error();
    if (!*piece) break;
    if ((*piece)->offset == 0) answer.AddCopy(ReplyHeader(job->operation().results()[(*piece)->result]));
    // Copied, so that a client that takes its reply slowly holds none of the job's memory, and no place in
    // flight; and dropped at once, because the next piece may need its buffer.
    answer.AddCopy((*piece)->data, (*piece)->bytes);
    job->CountCopied((*piece)->bytes);
  }
  answer.AddCopy(ReplyTail(call, *job));
  *reply = answer.Build();
  co_return Status();
}

/// The only message, once it is here.
QueueTask<Status> ReadRequest(UnaryCall& call) {
  ConnectionAccount* const account = call.account().get();
  if (account != nullptr) account->coming.fetch_add(1, std::memory_order_relaxed);
  call.idle_watch().reading = true;
  const bool came = co_await AtOnce(call.queue(), [&](void* tag) { call.stream.Read(&call.request, tag); });
  call.idle_watch().reading = false;
  if (account != nullptr) {
    account->coming.fetch_sub(1, std::memory_order_relaxed);
    if (came) account->requests.fetch_add(1, std::memory_order_relaxed);
  }
  if (!came) {
    const Status gone = call.GoneOrLate();
    if (!call.InputEndedEarly() || gone.code() != Code::kCancelled) co_return gone;
    co_return Status({.code = Code::kInvalidArgument,
                      .reason = "BAD_MESSAGE",
                      .message = "the call ended before its message",
                      .field = "message",
                      .value = "none",
                      .allowed = "one"});
  }
  call.SetArrived(Clock::now());
  const size_t bytes = call.request.Length();
  Crew::Took(bytes > kQuicklyTakenBytes);
  call.Took(bytes);
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
  Status served = call->refused();
  if (served.ok() && call->computes) served = call->IsComing();
  if (served.ok()) served = co_await ReadRequest(*call);
  if (served.ok()) served = co_await Caught([&] { return handler(*call, &reply); });
  call->request.Clear();
  const Status status = call->FinalStatus(served);
  call->Ended(status, std::exchange(call->told, std::nullopt));
  call->DropJob();
  call->StartIdleWatch();
  call->idle_watch().writing = true;
  co_await Operation([&](void* tag) {
    if (status.ok()) {
      call->stream.WriteAndFinish(reply, {}, grpc::Status::OK, tag);
    } else {
      call->stream.Finish(ToGrpc(status), tag);
    }
  });
}

}  // namespace tilewire::rpc
