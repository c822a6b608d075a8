// The streams that carry a job: joining, half-closing, ending, and failing together.
#include <string>
#include <utility>

#include "server/engine/job/job.h"

namespace tilewire::engine {

Result<int> Job::Join() {
  MutexLock lock(mutex_);
  if (!status_.ok()) return tilewire::Fail(status_);
  if (streams_.half_closed(0))
    return tilewire::Fail(Status(Code::kFailedPrecondition, "JOIN_LATE",
                                 "the job's first stream has half-closed; join before that"));
  if (!takes_input() && EverythingTakenLocked())
    return tilewire::Fail(Status(Code::kFailedPrecondition, "JOIN_LATE",
                                 "all output of the job was handed out; join before that"));
  if (streams_.count() >= max_streams())
    return OverLimit("streams of the job", std::to_string(streams_.count() + 1),
                     std::to_string(max_streams()));
  return streams_.Add();
}

int Job::streams() const {
  MutexLock lock(mutex_);
  return streams_.count();
}

bool Job::EverythingTakenLocked() const {
  return InputOverLocked() && output_.over();
}

void Job::InputEnded(int stream) {
  Deferred later;
  {
    MutexLock lock(mutex_);
    streams_.HalfClose(stream);
    // The first stream may come after joined ones; nobody joins after it.
    if (streams_.all_half_closed() && !input_.ended()) {
      if (const int64_t missing = input_.missing(); missing > 0)
        FailLocked(Status(Code::kInvalidArgument, "BYTES_MISSING",
                          "the client half-closed, but " + std::to_string(missing) +
                              " blocks never arrived; every byte of every operand must be sent"),
                   &later);
      input_.End();
    }
    CheckWindowLocked(&later);
    DeliverLocked(&later);
  }
  RunAll(&later);
}

void Job::StreamDone(int stream) {
  Deferred later;
  {
    MutexLock lock(mutex_);
    streams_.Done(stream);
    DeliverLocked(&later);
  }
  RunAll(&later);
}

void Job::StreamLost(int stream, const Status& why) {
  Deferred later;
  {
    MutexLock lock(mutex_);
    if (status_.ok() && streams_.count() > 1 && !streams_.done(stream)) {
      streams_.Lose(stream, why);
      FailLocked(
          Status(Code::kUnavailable, "STREAM_LOST",
                 "another stream of the job ended early: " + why.ToString() + "; repeat the whole call"),
          &later);
    } else if (!streams_.done(stream)) {
      FailLocked(why, &later);
    }
  }
  RunAll(&later);
}

void Job::FailLocked(const Status& status, Deferred* later) {
  if (!status_.ok()) return;
  if (stores() ? storing_ : EverythingTakenLocked() && streams_.joined_done()) return;
  status_ = status;
  if (order_) {  // whoever waits for its turn waits no longer
    later->calls.push_back([order = std::exchange(order_, nullptr)] {});
    phase_.store(Phase::kOpen);
  }
  input_.WakeAll(&later->calls);
  for (OutputWaiter& waiter : output_.TakeWaiters())
    later->calls.push_back(
        [on_output = std::move(waiter.on_output), told = streams_.Told(waiter.stream, status_)] {
          on_output(tilewire::Fail(told));
        });
}

void Job::Fail(const Status& status) {
  Deferred later;
  {
    MutexLock lock(mutex_);
    FailLocked(status, &later);
  }
  RunAll(&later);
}

Status Job::status(int stream) const {
  MutexLock lock(mutex_);
  return streams_.Told(stream, status_);
}

}  // namespace tilewire::engine
