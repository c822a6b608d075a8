// The output half of a job: result bytes leave in blocks, ascending, as they become ready. Results lie one
// after the other in one area, and what lies between them is nobody's: it never leaves.
#include <algorithm>
#include <utility>

#include "server/engine/job/job.h"

namespace tilewire::engine {
namespace {

/// Where the result ends that byte `offset` of the result area lies in.
int64_t ResultEnd(const Operation& operation, int64_t offset) {
  const size_t result = operation.result_at(offset);
  return operation.result_offset(result) + operation.results()[result].bytes();
}

/// Where output goes on that came up to `end`: there, or at the next result.
int64_t Behind(const Operation& operation, int64_t end) {
  const size_t result = operation.result_at(end - 1);
  const bool more = result + 1 < operation.results().size();
  return more && end == ResultEnd(operation, end - 1) ? operation.result_offset(result + 1) : end;
}

}  // namespace

void Job::ResultReadyLocked(int64_t bytes, Deferred* later) {
  ready_bytes_ = std::max(ready_bytes_, bytes);
  PumpOutputLocked(later);
}

void Job::NextOutput(int stream, bool take, OnOutput on_output) {
  Deferred later;
  {
    MutexLock lock(mutex_);
    if (!status_.ok()) {
      later.calls.push_back([on_output = std::move(on_output), told = StatusLocked(stream)] {
        on_output(tilewire::Fail(told));
      });
    } else {
      output_waiters_.push_back({stream, take, std::move(on_output)});
      PumpOutputLocked(&later);
    }
  }
  RunAll(&later);
}

void Job::PumpOutputLocked(Deferred* later) {
  if (!status_.ok()) return;
  if (!resources_.output_in_place && !stores_ && !resources_.result_there) {
    const int64_t total = operation_->result_bytes();
    while (output_blocks_.any_free() && next_copy_ < total) {
      const int64_t begin = next_copy_;
      int64_t end = OutputEnd(begin);
      if (result_region()) end = std::min(end, ResultEnd(*operation_, begin));
      if (end > ready_bytes_) break;
      next_copy_ = result_region() ? Behind(*operation_, end) : end;
      StartCopyOutLocked(begin, end - begin, output_blocks_.Take());
    }
  }
  DeliverLocked(later);
}

void Job::StartCopyOutLocked(int64_t offset, int64_t bytes, int buffer) {
  const int lane = LaneFor(Stage::kD2H);
  const bool shared = static_cast<bool>(result_region());
  std::byte* const to = shared ? result_region().data() + offset : resources_.output_blocks[buffer].data();
  submissions_.AddCopy(context_->lanes[lane], shared ? &Lane::CopyOutShared : &Lane::CopyOut, to,
                       ResultAt(offset), bytes,
                       [self = shared_from_this(), offset, bytes, buffer,
                        span = Span{.stage = Stage::kD2H,
                                    .track = static_cast<uint32_t>(lane),
                                    .index = static_cast<uint64_t>(offset / block_bytes()),
                                    .bytes = static_cast<uint64_t>(bytes)}](const Completion& completion) {
                         Deferred later;
                         {
                           MutexLock lock(self->mutex_);
                           if (self->CompletedLocked(span, completion, &later)) {
                             if (!self->result_region())
                               self->output_blocks_.Fill(buffer, offset, offset + bytes);
                             if (self->ResultInRing())
                               self->LeaveLocked(RangeAt(*self->operation_, offset), bytes, &later);
                             if (self->result_region()) self->WrittenLocked(bytes, buffer, &later);
                             self->DeliverLocked(&later);
                           }
                         }
                         self->RunAll(&later);
                         self->ReportDeviceFailure(completion);
                       });
}

/// A run of the result is in its region.
void Job::WrittenLocked(int64_t bytes, int buffer, Deferred* later) {
  region_out_ += bytes;
  output_blocks_.Free(buffer);
  context_->count(0, 0, bytes, 0);
  if (context_->host_memory) CountCopied(static_cast<uint64_t>(bytes));
  if (region_out_ < operation_->payload_bytes()) return PumpOutputLocked(later);
  const Status status = result_region().region->Check();
  if (status.ok()) return;
  region_out_ -= bytes;  // or the job would count as done, too late to fail
  FailLocked(status, later);
}

/// Whether nothing is left for a stream that waits.
bool Job::EndLocked(const OutputWaiter& waiter) const {
  if (!waiter.take) return streams_[waiter.stream].half_closed;
  return EverythingTakenLocked() && (waiter.stream > 0 || JoinedDoneLocked());
}

void Job::DeliverLocked(Deferred* later) {
  for (auto waiter = output_waiters_.begin(); waiter != output_waiters_.end();) {
    std::optional<OutputPiece> piece;
    if (!EndLocked(*waiter)) {
      if (waiter->take) piece = NextPieceLocked();
      if (!piece) {
        ++waiter;
        continue;
      }
    }
    if (stores_ && waiter->stream == 0 && stored_ids_.empty()) {
      storing_ = true;
      later->calls.push_back([self = shared_from_this(), on_output = std::move(waiter->on_output)] {
        self->StoreResult(on_output);
      });
    } else {
      later->calls.push_back(
          [on_output = std::move(waiter->on_output), piece = std::move(piece)] { on_output(piece); });
    }
    waiter = output_waiters_.erase(waiter);
  }
}

/// The next run of result bytes, if it is on the host.
std::optional<OutputPiece> Job::NextPieceLocked() {
  if (stores_ || result_region() || next_offset_ >= ready_bytes_) return std::nullopt;
  const int64_t begin = next_offset_,
                end = std::min({OutputEnd(begin), ResultEnd(*operation_, begin), ready_bytes_}),
                next = Behind(*operation_, end);
  const size_t result = operation_->result_at(begin);
  OutputPiece piece{.result = static_cast<uint32_t>(result),
                    .offset = begin - operation_->result_offset(result),
                    .bytes = static_cast<size_t>(end - begin)};
  if (resources_.output_in_place) {
    // Straight from the result, cut at block ends so that sending starts before everything is ready.
    piece.data = ResultAt(begin);
    piece.hold = shared_from_this();
    if (ResultInRing())
      piece.hold =
          std::shared_ptr<const void>(piece.data, [self = shared_from_this(), begin, bytes = end - begin](
                                                      const void*) { self->ReturnPiece(begin, bytes); });
  } else {
    const auto lent = output_blocks_.Lend(begin, next);
    if (!lent) return std::nullopt;
    piece.data = resources_.output_blocks[lent->block].data() + lent->at;
    piece.hold = std::shared_ptr<const void>(piece.data, [self = shared_from_this(), block = lent->block](
                                                             const void*) { self->ReturnOutput(block); });
  }
  next_offset_ = next;
  bytes_out_ += piece.bytes;
  context_->count(0, 0, static_cast<int64_t>(piece.bytes), 0);
  return piece;
}

void Job::ReturnOutput(int buffer) {
  Deferred later;
  {
    MutexLock lock(mutex_);
    output_blocks_.Return(buffer);
    PumpOutputLocked(&later);
  }
  RunAll(&later);
}

}  // namespace tilewire::engine
