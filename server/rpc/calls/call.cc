#include "server/rpc/calls/call.h"

#include <utility>

#include "server/rpc/conversions/status.h"

namespace tilewire::rpc {

Call::~Call() {
  if (!record_.started()) return;
  record_.SetStatus(cancellation_.OnRecord(record_.status()));
  idle_watch_.Stop();
  record_.Tell();
  job_.Drop();  // with its leases, but where a queue's thread still looks after it (Awaited)
  shared_->running.End(this);
}

void Call::Started() {
  const TimePoint arrived = Clock::now();
  metadata_ = ReadMetadata(&context_, *shared_, shared_->probe_token);
  cancellation_.Start(shared_from_this(), &metadata_, arrived);
  shared_->running.Begin(weak_from_this());
  record_.Start(&metadata_, arrived);
}

QueueTask<Result<std::shared_ptr<engine::Job>>> Call::OpenJob(std::unique_ptr<engine::Operation> operation,
                                                              engine::JobOptions options, bool drained) {
  record_.SetOperation(operation->name());
  if (shared_->running.draining() && !drained)
    co_return Fail(Status(Code::kUnavailable, "DRAINING", "the server is draining; try another"));
  options.identity = metadata_.identity;
  options.share = metadata_.Share();
  options.arrived = record_.arrived();
  if (const auto left = metadata_.TimeLeft()) options.deadline = engine().timer().Now() + *left;
  auto job = co_await job_.Open(queue_, std::move(operation), std::move(options));
  if (job) record_.SetJob((*job)->id());
  co_return job;
}

Result<std::shared_ptr<engine::Job>> Call::JoinJob(const std::string& id) {
  record_.SetJoins();
  constexpr size_t kLongestId = 64;  // ours have 33 characters; what is echoed and logged must stay short
  if (id.size() > kLongestId)
    return BadValue("join.job", std::to_string(id.size()) + " characters", "an id as in Opened.job");
  TILEWIRE_ASSIGN_OR_RETURN(const std::shared_ptr<engine::Job> job, engine().Find(id, identity()));
  record_.SetJob(id);
  record_.SetOperation(job->operation().name());
  TILEWIRE_RETURN_IF_ERROR(job_.Join(job));
  return job;
}

Status Call::FinalStatus(const Status& status) const {
  const Status reason = job_.reason();
  return reason.ok() ? status : reason;
}

void Call::Ended(const Status& status) {
  const auto job = job_.get();
  // A joined stream tells only that it was there.
  record_.End(status, job && stream_number() == 0 ? TimingOf(*job) : Timing());
  AddRetryPushback(status, &context_);
}

void Call::StartIdleWatch() {
  idle_watch_.Start(
      weak_from_this(), &engine().timer(), shared_->idle_seconds, engine().options().block_bytes,
      [this] { return job_.streams(); },
      [this](bool cut) {
        End(Status(Code::kDeadlineExceeded, "IDLE",
                   "no block of progress within --idle-seconds; the call was given up"),
            cut);
      });
}

}  // namespace tilewire::rpc
