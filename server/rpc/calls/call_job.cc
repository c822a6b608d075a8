#include "server/rpc/calls/call_job.h"

#include <utility>

namespace tilewire::rpc {

QueueTask<Result<CallJob::JobPtr>> CallJob::Open(grpc::CompletionQueue* queue, engine::OperationPtr operation,
                                                 engine::JobOptions options) {
  auto job = co_await OnQueue<Result<JobPtr>>(queue, [&](auto resume) {
    const auto id = engine_->Open(std::move(operation), std::move(options), std::move(resume));
    Status reason;
    {
      const MutexLock lock(mutex_);
      waiting_ = id;
      reason = reason_;
    }
    if (!reason.ok()) (void)End(reason).ok();  // that came before the id was known
  });
  if (!job) co_return job;
  if (const Status reason = Put(*job); !reason.ok()) (*job)->Fail(reason);
  co_return job;
}

Status CallJob::Join(const JobPtr& job) {
  TILEWIRE_ASSIGN_OR_RETURN(stream_number_, job->Join());
  if (const Status reason = Put(job); !reason.ok()) job->StreamLost(stream_number_, reason);
  return {};
}

Status CallJob::Put(const JobPtr& job) {
  const MutexLock lock(mutex_);
  waiting_ = 0;
  job_ = job;
  return reason_;
}

Status CallJob::End(const Status& status) {
  JobPtr job;
  engine::Engine::OpenId waiting = 0;
  Status why;
  {
    const MutexLock lock(mutex_);
    if (reason_.ok()) reason_ = status;
    why = reason_;
    job = job_;
    waiting = std::exchange(waiting_, 0);
  }
  if (waiting) engine_->CancelOpen(waiting, why);
  // The earliest deadline ends the job for all its streams, and so does the server's end.
  if (job && (why.reason() == "DEADLINE" || why.reason() == "DRAINING")) job->Fail(why);
  if (job) job->StreamLost(stream_number_, why);
  return why;
}

Status CallJob::reason() const {
  const MutexLock lock(mutex_);
  return reason_;
}

CallJob::JobPtr CallJob::get() const {
  const MutexLock lock(mutex_);
  return job_;
}

int CallJob::streams() const {
  const MutexLock lock(mutex_);  // no reference: the last one must not end on the caller's thread
  return job_ ? job_->streams() : 1;
}

void CallJob::Drop() {
  JobPtr job;  // freed after the lock is gone
  const MutexLock lock(mutex_);
  job.swap(job_);
}

}  // namespace tilewire::rpc
