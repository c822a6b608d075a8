#include "server/rpc/calls/call.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "server/base/limits.h"
#include "server/rpc/calls/identity.h"
#include "server/rpc/conversions/status.h"
#include "server/rpc/transport/receive_limits.h"

namespace tilewire::rpc {

namespace {
/// What gRPC told the client, as far as it can be known here.
Status RefusedByGrpc() {
  return Status(
      {.code = Code::kResourceExhausted,
       .reason = "LIMIT",
       .message = "gRPC refused a message of more than " + std::to_string(kTransportMessageBytes) + " bytes",
       .field = "message",
       .value = "more than " + std::to_string(kTransportMessageBytes) + " bytes",
       .allowed = std::to_string(kMaxMessageBytes)});
}
}  // namespace

Call::Call(CallContext* shared, std::string method, grpc::ServerCompletionQueue* queue)
    : shared_(shared), queue_(queue) {
  record_.method = std::move(method);
}

Call::~Call() {
  if (!started_) return;
  // A client that is gone looks like one that half-closed until gRPC says so, and nobody got a reply that was
  // ready.
  if (cancelled_.load() && (record_.status.ok() || record_.status.reason() == "BYTES_MISSING"))
    record_.status = aborted_;
  if (cancelled_.load() && input_ended_early_ && aborted_.reason() == "CANCELLED")
    record_.status = RefusedByGrpc();
  idle_watch_.Stop();
  if (!own_) shared_->observer->OnCallEnd(record_);
  job_.reset();  // with its leases, but where a queue's thread still looks after it (Awaited)
  shared_->End(this);
}

void* Call::WatchDone() {
  // Tags are Event pointers: the conversion must not go through the derived class's address.
  return static_cast<Event*>(&done_);
}

void Call::DoneEvent::Complete(bool) {
  const auto self = std::move(call);
  if (self->context_.IsCancelled()) self->ClientGone();
}

void Call::Started() {
  started_ = true;
  arrived_ = Clock::now();
  done_.call = shared_from_this();
  Introduce(&context_, shared_->identity_header, &record_);
  shared_->Begin(this);
  own_ = IncomingText(context_, "x-tilewire-probe") == shared_->probe_token && !shared_->probe_token.empty();
  if (own_) return;
  shared_->last_arrival = engine().timer().Now();
  shared_->observer->OnCallStart(record_.method);
}

std::optional<Clock::duration> Call::TimeLeft() const {
  const auto deadline = context_.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return std::nullopt;
  const auto left = deadline - std::chrono::system_clock::now();
  if (left > std::chrono::hours(24 * 365)) return std::nullopt;
  return std::chrono::duration_cast<Clock::duration>(left);
}

QueueTask<Result<std::shared_ptr<engine::Job>>> Call::OpenJob(std::unique_ptr<engine::Operation> operation,
                                                              engine::JobOptions options, bool drained) {
  record_.operation = operation->name();
  if (shared_->draining.load() && !drained)
    co_return Fail(Status(Code::kUnavailable, "DRAINING", "the server is draining; try another"));
  options.identity = record_.identity;
  options.arrived = arrived_;
  if (const auto left = TimeLeft()) options.deadline = engine().timer().Now() + *left;
  auto job = co_await OnQueue<Result<std::shared_ptr<engine::Job>>>(queue_, [&](auto resume) {
    const auto id = engine().Open(std::move(operation), options, std::move(resume));
    Status aborted;
    {
      const MutexLock lock(mutex_);
      waiting_ = id;
      aborted = aborted_;
    }
    if (!aborted.ok()) Abort(aborted, false);  // that came before the id was known
  });
  if (!job) co_return job;
  Status aborted;
  {
    const MutexLock lock(mutex_);
    waiting_ = 0;
    job_ = *job;
    aborted = aborted_;
  }
  record_.job = (*job)->id();
  if (!aborted.ok()) (*job)->Fail(aborted);
  co_return job;
}

Result<std::shared_ptr<engine::Job>> Call::JoinJob(const std::string& id) {
  record_.joins = true;
  constexpr size_t kLongestId = 64;  // ours have 33 characters; what is echoed and logged must stay short
  if (id.size() > kLongestId)
    return BadValue("join.job", std::to_string(id.size()) + " characters", "an id as in Opened.job");
  TILEWIRE_ASSIGN_OR_RETURN(const std::shared_ptr<engine::Job> job, engine().Find(id, record_.identity));
  record_.job = id;
  record_.operation = job->operation().name();
  TILEWIRE_ASSIGN_OR_RETURN(stream_number_, job->Join());
  Status aborted;
  {
    const MutexLock lock(mutex_);
    job_ = job;
    aborted = aborted_;
  }
  if (!aborted.ok()) job->StreamLost(stream_number_, aborted);
  return job;
}

namespace {
/// A client cancels at its own deadline; what it told the server was rounded up and took a while to arrive.
Clock::duration DeadlineSlack(Clock::duration whole) {
  return std::chrono::milliseconds(20) + whole / 50;
}
}  // namespace

void Call::ClientGone() {
  cancelled_.store(true);
  if (shared_->cutting.load()) return Abort(ServerGone(), false);
  const auto left = TimeLeft();
  const bool late = left && *left <= DeadlineSlack(*left + (Clock::now() - arrived_));
  Abort(late ? Status(Code::kDeadlineExceeded, "DEADLINE", "the call's deadline passed")
             : Status(Code::kCancelled, "CANCELLED", "the client cancelled the call or is gone"),
        false);
}

void Call::Abort(const Status& status, bool cut) {
  std::shared_ptr<engine::Job> job;
  engine::Engine::OpenId waiting = 0;
  Status why;
  {
    MutexLock lock(mutex_);
    if (aborted_.ok()) aborted_ = status;
    why = aborted_;
    job = job_;
    waiting = std::exchange(waiting_, 0);
  }
  if (waiting) engine().CancelOpen(waiting, why);
  // The earliest deadline ends the job for all its streams, and so does the server's end.
  if (job && (why.reason() == "DEADLINE" || why.reason() == "DRAINING")) job->Fail(why);
  if (job) job->StreamLost(stream_number_, why);
  // A server may end a call at any time only through the C API; the client sees this very code and message.
  if (cut)
    grpc_call_cancel_with_status(context_.c_call(), static_cast<grpc_status_code>(why.code()),
                                 std::string(why.message()).c_str(), nullptr);
}

Status Call::FinalStatus(const Status& status) {
  MutexLock lock(mutex_);
  return aborted_.ok() ? status : aborted_;
}

void Call::Ended(const Status& status) {
  std::shared_ptr<engine::Job> job;
  {
    MutexLock lock(mutex_);
    job = job_;
  }
  record_.status = status;
  if (job && stream_number_ == 0) {  // a joined stream tells only that it was there
    record_.timing = job->timing();
    record_.timing.spans.clear();
  }
  record_.timing.wall_us = std::chrono::duration<double, std::micro>(Clock::now() - arrived_).count();
  record_.bytes_in = record_.timing.bytes_in;
  record_.bytes_out = status.ok() ? record_.timing.bytes_out : 0;
  AddRetryPushback(status, &context_);
}

void Call::InputEndedEarly() {
  // The transport's errors are the client's doing. A client that half-closes early and then cancels passes
  // for one whose message was too large: few do, and nothing tells them apart.
  input_ended_early_ = !grpc_call_failed_before_recv_message(context_.c_call());
}

void Call::DropJob() {
  std::shared_ptr<engine::Job> job;  // freed after the lock is gone
  MutexLock lock(mutex_);
  job.swap(job_);
}

int Call::Sharers() {
  MutexLock lock(mutex_);
  return job_ ? job_->streams() : 1;
}

void Call::StartIdleWatch() {
  idle_watch_.Start(
      weak_from_this(), &engine().timer(), shared_->idle_seconds, engine().options().block_bytes,
      [this] { return Sharers(); },
      [this](bool cut) {
        Abort(Status(Code::kDeadlineExceeded, "IDLE",
                     "no block of progress within --idle-seconds; the call was given up"),
              cut);
      });
}

QueueTask<Status> Feed(Call& call, engine::Job& job, engine::Intake& intake, uint32_t operand,
                       uint64_t offset, const wire::Pieces& pieces) {
  if (Status status = intake.BeginChunk(operand, offset, wire::TotalBytes(pieces)); !status.ok())
    co_return status;
  auto piece = pieces.begin();
  size_t used = 0;  // of *piece
  Span span{.stage = Stage::kStage, .track = static_cast<uint32_t>(call.stream_number()), .operand = operand};
  while (intake.chunk_left() > 0) {
    const auto place = intake.NextPlace();
    if (!place) {
      co_await OnQueue<bool>(call.queue(),
                             [&](auto resume) { intake.WhenPlaceFree([resume] { resume(true); }); });
      if (Status status = job.status(call.stream_number()); !status.ok()) co_return status;
      continue;
    }
    span.begin = Clock::now();
    size_t filled = 0;
    while (filled < place->size()) {
      if (used == piece->size()) {
        ++piece;
        used = 0;
        continue;
      }
      const size_t bytes = std::min(place->size() - filled, piece->size() - used);
      std::memcpy(place->data() + filled, piece->data() + used, bytes);
      filled += bytes;
      used += bytes;
    }
    span.end = Clock::now();
    span.index = offset / static_cast<uint64_t>(job.block_bytes());
    span.bytes = filled;
    offset += filled;
    job.AddSpan(span);
    job.CountCopied(filled);
    intake.Filled(filled);
  }
  co_return Status();
}

Status Bug(const std::exception* error) {
  return Status(Code::kInternal, "INTERNAL_ERROR", error ? error->what() : "unknown exception");
}

}  // namespace tilewire::rpc
