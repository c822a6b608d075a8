// How a call ends that does not end by itself: its client cancels or is gone, its deadline passes, or the
// server ends it.
#pragma once

#include <grpcpp/server_context.h>

#include <atomic>
#include <memory>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/rpc/calls/call_job.h"
#include "server/rpc/calls/metadata.h"
#include "server/rpc/calls/running.h"
#include "server/rpc/transport/coroutine.h"

namespace tilewire::rpc {

/// One call's: gRPC's word that the call is over, which comes once, is an event of its queue. Thread-safe.
class Cancellation final : private Event {
 public:
  /// All of these outlive it.
  Cancellation(grpc::ServerContext* context, const RunningCalls* running, CallJob* job)
      : context_(context), running_(running), job_(job) {}

  /// Before the request is asked for.
  void Watch() { context_->AsyncNotifyWhenDone(static_cast<Event*>(this)); }
  /// The request is here: `call` lives until gRPC's word came. `metadata` is its.
  void Start(std::shared_ptr<void> call, const Metadata* metadata, TimePoint arrived);

  /// Fails the job; `cut` also ends what waits for the client.
  void End(const Status& status, bool cut);
  /// Whether the client is gone, or was cut.
  bool cancelled() const { return cancelled_.load(); }
  /// Why a client is gone: its message was refused (RefusedCalls); its deadline has passed, as far as its
  /// clock can be known here; else it cancelled.
  Status GoneOrLate() const;
  /// True: input ended early, and not by the transport: the client half-closed or, if the call is then
  /// cancelled, gRPC refused a message by itself. Else false. Asked once, by the coroutine that reads.
  bool InputEndedEarly();
  /// What is on record of a call that ended with `status`, as far as its client was told so.
  Status OnRecord(const Status& status) const;

 private:
  void Complete(bool ok) override;
  void ClientGone();

  grpc::ServerContext* const context_;
  const RunningCalls* const running_;
  CallJob* const job_;
  const Metadata* metadata_ = nullptr;
  TimePoint arrived_;
  Mutex mutex_;  ///< gRPC's word may come on another thread while the request's is still taking it
  std::shared_ptr<void> call_ TILEWIRE_GUARDED_BY(mutex_);
  bool over_ TILEWIRE_GUARDED_BY(mutex_) = false;
  bool input_ended_early_ = false;
  std::atomic<bool> cancelled_{false};
};

}  // namespace tilewire::rpc
