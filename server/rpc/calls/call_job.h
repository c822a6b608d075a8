// The job that a call runs, or a stream of which it is; and why it is to end.
#pragma once

#include <grpcpp/completion_queue.h>

#include <memory>

#include "server/base/mutex.h"
#include "server/engine/engine.h"
#include "server/rpc/transport/coroutine.h"

namespace tilewire::rpc {

/// One call's. Thread-safe; what opens or joins is one coroutine.
class CallJob {
 public:
  using JobPtr = std::shared_ptr<engine::Job>;

  explicit CallJob(engine::Engine* engine) : engine_(engine) {}

  /// As Engine::Open; the coroutine goes on on the queue's thread.
  QueueTask<Result<JobPtr>> Open(grpc::CompletionQueue* queue, engine::OperationPtr operation,
                                 engine::JobOptions options);
  /// Fails as Job::Join does.
  Status Join(const JobPtr& job);
  /// Which of the job's streams the call is.
  int stream_number() const { return stream_number_; }

  /// Takes it out of the queue, fails it, or does so as soon as it is there. The first reason counts, and is
  /// returned.
  Status End(const Status& why);
  /// What End was told first; OK where nothing ended it.
  Status reason() const;
  /// Null where there is none, or none any more.
  JobPtr get() const;
  /// How many streams carry it; 1 where there is none.
  int streams() const;
  /// Gives its memory back before the call itself ends; only where no coroutine uses it any more.
  void Drop();

 private:
  /// The job is here; returns the reason that came before it.
  Status Put(const JobPtr& job);

  engine::Engine* const engine_;
  int stream_number_ = 0;
  mutable Mutex mutex_;
  JobPtr job_ TILEWIRE_GUARDED_BY(mutex_);
  engine::Engine::OpenId waiting_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  Status reason_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire::rpc
