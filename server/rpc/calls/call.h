// What all calls share. A call is put together of parts that do not know it: what it says of itself
// (metadata.h), the job that it runs (call_job.h), what ends it early (cancellation.h), and what is told of
// it (record.h).
#pragma once

#include <grpcpp/server_context.h>

#include <memory>
#include <optional>
#include <string>

#include "server/rpc/calls/call_job.h"
#include "server/rpc/calls/cancellation.h"
#include "server/rpc/calls/context.h"
#include "server/rpc/calls/metadata.h"
#include "server/rpc/calls/record.h"
#include "server/rpc/conversions/references.h"
#include "server/rpc/transport/coroutine.h"
#include "server/rpc/transport/idle_watch.h"

namespace tilewire::rpc {

/// One call. Shared by its coroutines and by gRPC's done event; its destructor reports the end.
class Call : public Endable, public std::enable_shared_from_this<Call> {
 public:
  Call(CallContext* shared, std::string method, grpc::ServerCompletionQueue* queue)
      : shared_(shared), queue_(queue), record_(shared, std::move(method)) {}
  virtual ~Call();

  grpc::ServerContext& context() { return context_; }
  grpc::ServerCompletionQueue* queue() const { return queue_; }
  CallContext& shared() const { return *shared_; }
  engine::Engine& engine() const { return *shared_->engine; }
  const std::string& identity() const { return metadata_.identity; }
  /// Not OK: nobody knows who calls, or he may not; the call ends so.
  const Status& refused() const { return metadata_.refused; }
  /// Of the caller's arrays and regions.
  Finder finder() const { return Finder(&engine().arrays(), &engine().regions(), identity()); }

  /// What the policy says that this caller may have, as of when the call came.
  PolicyLimits own_limits() const;

  /// Before the request is asked for.
  void WatchDone() { cancellation_.Watch(); }
  /// The request is here: reads metadata, starts the record.
  void Started();

  /// Plans are made; admits the job as `options` say, but for identity and times, which are the call's.
  /// UNAVAILABLE `DRAINING` while draining, unless it may be `drained`: fetches what would else be lost.
  QueueTask<Result<std::shared_ptr<engine::Job>>> OpenJob(engine::OperationPtr operation,
                                                          engine::JobOptions options, bool drained = false);
  /// Joins a running job of the same identity, also while draining. Fails as Engine::Find and Job::Join do.
  Result<std::shared_ptr<engine::Job>> JoinJob(const std::string& id);
  /// Which of the job's streams this call is.
  int stream_number() const { return job_.stream_number(); }

  void End(const Status& status, bool cut) override { cancellation_.End(status, cut); }
  bool waits_for_open() const override { return idle_watch_.reading.load() && !idle_watch_.opened.load(); }
  uint64_t connection_bytes() const override {
    return account() ? account()->received.load(std::memory_order_relaxed) : 0;
  }
  /// Whether the client is gone.
  bool cancelled() const { return cancellation_.cancelled(); }
  /// As Cancellation::GoneOrLate.
  Status GoneOrLate() const { return cancellation_.GoneOrLate(); }
  /// As Cancellation::InputEndedEarly.
  bool InputEndedEarly() { return cancellation_.InputEndedEarly(); }
  /// The status to report: what ended the call early, if anything did, else `status`.
  Status FinalStatus(const Status& status) const;
  /// As Record::Took, Left and SetArrived.
  void Took(size_t message_bytes) {
    message_bytes_ = message_bytes;
    record_.Took(message_bytes, is_stream());
  }
  void Left(uint64_t bytes) { record_.Left(bytes); }
  void SetArrived(TimePoint arrived) { record_.SetArrived(arrived); }
  /// Its headers came, its message did not: BUSY, for little, where it is a heavy one, most likely
  /// (ConnectionAccount::brings_heavy), and too many of those wait, or a light one, most likely, which would
  /// be old when it is read; or where its connection is asked to hold such calls back.
  Status IsComing();
  /// It came, and waits as a call of its weight (Throttle), by `job` and by its message, or turns out to be
  /// one of the other: BUSY where its connection is asked to hold such calls back.
  Status Comes(JobClass job);
  /// The same, later.
  Status HeldBack();
  /// BUSY where it waited too long for a thread, or to be read (ConnectionAccount::behind), because of calls
  /// that came before clients were asked to hold back.
  Status IsOld();
  /// It could not begin.
  void FoundNoPlace(const Status& status);
  /// It waits no longer, but runs until it has Ended.
  void Begins() { passage_->Begins(); }
  /// BUSY where too many others wait (Backlog): as soon as it is known which class it is of. `share`:
  /// share().
  Status RefusedLate(JobClass job, const std::string& share);
  Backlog& backlog() const { return shared_->backlog; }
  /// As Metadata::share.
  const std::string& share() const { return metadata_.share; }
  /// Of its connection; null where nobody knows it.
  const std::shared_ptr<ConnectionAccount>& account() const { return record_.account(); }
  /// As Record::SetWindow.
  void TellWindow(int64_t bytes) { record_.SetWindow(bytes); }
  /// Where the time of `job`, the call's, went, and how far away its client is.
  Timing TimingOf(const engine::Job& job) const { return record_.WithDistance(job.timing()); }
  /// Remembers how the call ended, and what to tell about the time it took: `timing`, where its client was
  /// told that already.
  void Ended(const Status& status, std::optional<Timing> timing = std::nullopt);
  /// Gives the job's memory back before the call itself ends; only where no coroutine uses the job any more.
  void DropJob() { job_.Drop(); }

  IdleWatch& idle_watch() { return idle_watch_; }
  /// Ends the call with DEADLINE_EXCEEDED `IDLE` when its client stalls.
  void StartIdleWatch();

 private:
  Status HeavyIsComing();
  Status LightIsComing();
  /// As HeldBack, before its message is here.
  Status HeldBackEarly();
  /// Lets the throttle of its weight look, where that is due.
  void LookAround();
  Status LateStatus(Late why) const;
  /// Of the calls that it waits with.
  Throttle& throttle();
  /// That of its connection for calls of its weight, or where there is none the one that all such share.
  const std::shared_ptr<Turn>& turn();
  /// BUSY, since calls like it wait for so long. `others` had better not come for as long, either.
  Status Behind(JobClass job, const Throttle::Hold& hold, bool others);
  /// Counts the call among its connection's, or refuses it.
  void EnterConnection();
  /// Whether it goes on for as long as its client likes, and counts as such.
  virtual bool is_stream() const { return false; }

  CallContext* const shared_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  Metadata metadata_;
  Policy::Ruling ruling_;  ///< as of when the call came; a view of metadata_
  Record record_;
  CallJob job_{shared_->engine};
  Cancellation cancellation_{&context_, &shared_->running, &job_};
  IdleWatch idle_watch_;
  std::optional<Throttle::Passage> passage_;  ///< not empty while it waits or runs
  Weight weight_ = Weight::kLight;
  JobClass job_class_ = JobClass::kSmall;  ///< a guess, until its message is here
  size_t message_bytes_ = 0;               ///< of the last one
  TimePoint came_{};                       ///< its headers, where its connection is known
  bool is_stream_ = false;                 ///< as is_stream(), for the destructor
  bool in_connection_ = false;             ///< whether it counts among its connection's
  std::string streams_as_;                 ///< among whose streams it counts; empty: nobody's
};

}  // namespace tilewire::rpc
