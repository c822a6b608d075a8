// What all calls share: identity of the request, the job it runs, cancellation, deadline, and the record of
// its end.
#pragma once

#include <grpcpp/server_context.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "server/base/mutex.h"
#include "server/engine/engine.h"
#include "server/engine/job/intake.h"
#include "server/rpc/calls/context.h"
#include "server/rpc/calls/observer.h"
#include "server/rpc/transport/coroutine.h"
#include "server/rpc/transport/idle_watch.h"
#include "server/rpc/transport/slices.h"

namespace tilewire::rpc {

/// One call. Shared by its coroutines and by gRPC's done event; its destructor reports the end.
class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(CallContext* shared, std::string method, grpc::ServerCompletionQueue* queue);
  virtual ~Call();

  grpc::ServerContext& context() { return context_; }
  grpc::ServerCompletionQueue* queue() const { return queue_; }
  CallContext& shared() const { return *shared_; }
  engine::Engine& engine() const { return *shared_->engine; }
  CallRecord& record() { return record_; }
  TimePoint arrived() const { return arrived_; }

  /// Before the request is asked for.
  void* WatchDone();
  /// The request is here: reads metadata, starts the record.
  void Started();

  /// Plans are made; admits the job as `options` say, but for identity and times, which are the call's.
  /// UNAVAILABLE `DRAINING` while draining, unless it may be `drained`: fetches what would else be lost.
  QueueTask<Result<std::shared_ptr<engine::Job>>> OpenJob(std::unique_ptr<engine::Operation> operation,
                                                          engine::JobOptions options, bool drained = false);
  /// Joins a running job of the same identity, also while draining. Fails as Engine::Find and Job::Join do.
  Result<std::shared_ptr<engine::Job>> JoinJob(const std::string& id);
  /// Which of the job's streams this call is.
  int stream_number() const { return stream_number_; }
  /// Ends the call from outside its coroutines: fails the job; `cut` also ends what waits for the client.
  void Abort(const Status& status, bool cut);
  /// Whether it waits for its first message: whatever it is told, it goes on waiting unless it is cut.
  bool waits_for_open() const { return idle_watch_.reading.load() && !idle_watch_.opened.load(); }
  /// The status to report: what aborted the call, if anything did, else `status`.
  Status FinalStatus(const Status& status);
  /// Remembers how the call ended, and what to tell about the time it took.
  void Ended(const Status& status);
  /// Gives the job's memory back before the call itself ends; only where no coroutine uses the job any more.
  void DropJob();
  bool cancelled() const { return cancelled_.load(); }
  /// Input ended early, and not by the transport: the client half-closed or, if the call is then cancelled,
  /// gRPC refused a message by itself. Told once, by the coroutine that reads.
  void InputEndedEarly();

  IdleWatch& idle_watch() { return idle_watch_; }
  /// Ends the call with DEADLINE_EXCEEDED `IDLE` when its client stalls.
  void StartIdleWatch();

 private:
  class DoneEvent final : public Event {
   public:
    void Complete(bool ok) override;
    std::shared_ptr<Call> call;
  };
  void ClientGone();
  int Sharers();
  /// How long until the client's deadline by gRPC's clock, if there is one.
  std::optional<Clock::duration> TimeLeft() const;

  CallContext* const shared_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  DoneEvent done_;
  IdleWatch idle_watch_;
  TimePoint arrived_;
  CallRecord record_;
  int stream_number_ = 0;
  bool started_ = false;
  bool own_ = false;                ///< the server's own probe
  bool input_ended_early_ = false;  ///< as of InputEndedEarly
  std::atomic<bool> cancelled_{false};

  Mutex mutex_;
  std::shared_ptr<engine::Job> job_ TILEWIRE_GUARDED_BY(mutex_);
  engine::Engine::OpenId waiting_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  Status aborted_ TILEWIRE_GUARDED_BY(mutex_);
};

/// Copies a chunk into the job, waiting for staging blocks as needed. `pieces` are `bytes` bytes at `offset`
/// of `operand`. Fails as Intake::BeginChunk does, or with the job's failure.
QueueTask<Status> Feed(Call& call, engine::Job& job, engine::Intake& intake, uint32_t operand,
                       uint64_t offset, const wire::Pieces& pieces);

/// The status of an exception that left a handler: INTERNAL, its text in the log only.
Status Bug(const std::exception* error);

}  // namespace tilewire::rpc
