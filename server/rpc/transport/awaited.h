// A queue's thread that has nothing to do but to wait for a kernel waits awake.
#pragma once

#include <grpcpp/completion_queue.h>

#include <memory>

#include "server/engine/job/job.h"

namespace tilewire::rpc {

/// The job, at most one, whose result this thread waits for: then neither it has to be woken for the next
/// call nor a lane's thread for the reply. One a thread, used by that thread alone, which must serve a queue
/// (ServeJobs).
class Awaited {
 public:
  static Awaited& OfThisThread();

  /// `job` is awaited() by its caller. Whatever was awaited before is left to its lane.
  void Keep(std::shared_ptr<engine::Job> job);
  bool any() const { return job_ != nullptr; }
  /// Looks after it for a moment: its reply, or another's of its lane, may be sent meanwhile.
  void Look();
  /// There is something to do: its lane's own thread takes over.
  void Leave();

 private:
  std::shared_ptr<engine::Job> job_;
};

/// Serves a queue until it is shut down and drained, and waits awake for what this thread awaits.
void ServeJobs(grpc::CompletionQueue* queue);

}  // namespace tilewire::rpc
