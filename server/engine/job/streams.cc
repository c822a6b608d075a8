// The streams that carry a job: joining, half-closing, ending, and failing together.
#include <algorithm>
#include <utility>

#include "server/engine/job/job.h"

namespace tilewire::engine {

Result<int> Job::Join() {
  MutexLock lock(mutex_);
  if (!status_.ok()) return tilewire::Fail(status_);
  if (streams_[0].half_closed)
    return tilewire::Fail(Status(Code::kFailedPrecondition, "JOIN_LATE",
                                 "the job's first stream has half-closed; join before that"));
  if (!takes_input() && EverythingTakenLocked())
    return tilewire::Fail(Status(Code::kFailedPrecondition, "JOIN_LATE",
                                 "all output of the job was handed out; join before that"));
  if (static_cast<int>(streams_.size()) >= max_streams())
    return OverLimit("streams of the job", std::to_string(streams_.size() + 1),
                     std::to_string(max_streams()));
  streams_.emplace_back();
  return static_cast<int>(streams_.size()) - 1;
}

int Job::streams() const {
  MutexLock lock(mutex_);
  return static_cast<int>(streams_.size());
}

bool Job::EverythingTakenLocked() const {
  if (takes_input() && !input_ended_) return false;
  if (stores_ || resources_.result_there) return ready_bytes_ == operation_->result_bytes();
  return result_region() ? region_out_ == operation_->payload_bytes()
                         : next_offset_ == operation_->result_bytes();
}

bool Job::JoinedDoneLocked() const {
  return std::all_of(streams_.begin() + 1, streams_.end(), [](const Stream& stream) { return stream.done; });
}

void Job::InputEnded(int stream) {
  Deferred later;
  {
    MutexLock lock(mutex_);
    streams_[stream].half_closed = true;
    // The first stream may come after joined ones; nobody joins after it.
    const bool all =
        std::all_of(streams_.begin(), streams_.end(), [](const Stream& s) { return s.half_closed; });
    if (all && !input_ended_) {
      uint64_t missing = 0;
      for (const auto& blocks : claimed_) missing += std::count(blocks.begin(), blocks.end(), false);
      if (missing > 0)
        FailLocked(Status(Code::kInvalidArgument, "BYTES_MISSING",
                          "the client half-closed, but " + std::to_string(missing) +
                              " blocks never arrived; every byte of every operand must be sent"),
                   &later);
      input_ended_ = true;
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
    streams_[stream].done = true;
    DeliverLocked(&later);
  }
  RunAll(&later);
}

void Job::StreamLost(int stream, const Status& why) {
  Deferred later;
  {
    MutexLock lock(mutex_);
    if (status_.ok() && streams_.size() > 1 && !streams_[stream].done) {
      lost_stream_ = stream;
      lost_status_ = why;
      FailLocked(
          Status(Code::kUnavailable, "STREAM_LOST",
                 "another stream of the job ended early: " + why.ToString() + "; repeat the whole call"),
          &later);
    } else if (!streams_[stream].done) {
      FailLocked(why, &later);
    }
  }
  RunAll(&later);
}

void Job::FailLocked(const Status& status, Deferred* later) {
  if (!status_.ok()) return;
  if (stores_ ? storing_ : EverythingTakenLocked() && JoinedDoneLocked()) return;
  status_ = status;
  for (auto& waiter : block_waiters_) later->calls.push_back(std::move(waiter.function));
  block_waiters_.clear();
  for (auto& waiter : output_waiters_)
    later->calls.push_back([on_output = std::move(waiter.on_output), told = StatusLocked(waiter.stream)] {
      on_output(tilewire::Fail(told));
    });
  output_waiters_.clear();
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
  return StatusLocked(stream);
}

}  // namespace tilewire::engine
