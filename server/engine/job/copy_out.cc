// The output half of a job: result bytes leave in blocks, ascending, as they become ready.
#include <utility>

#include "server/engine/job/job.h"

namespace tilewire::engine {

void Job::ResultReadyLocked(int64_t bytes, Deferred* later) {
  output_.Ready(bytes);
  PumpOutputLocked(later);
}

void Job::NextOutput(int stream, bool take, OnOutput on_output) {
  Deferred later;
  {
    MutexLock lock(mutex_);
    if (!status_.ok()) {
      later.calls.push_back([on_output = std::move(on_output), told = streams_.Told(stream, status_)] {
        on_output(tilewire::Fail(told));
      });
    } else {
      output_.Wait({stream, take, std::move(on_output)});
      PumpOutputLocked(&later);
    }
  }
  RunAll(&later);
}

bool Job::output_awaited(int stream) const {
  const MutexLock lock(mutex_);
  return output_.IsAwaited(stream);
}

void Job::PumpOutputLocked(Deferred* later) {
  if (!status_.ok()) return;
  while (const auto copy = output_.NextCopy()) StartCopyOutLocked(*copy);
  DeliverLocked(later);
}

void Job::StartCopyOutLocked(const Output::Copy& copy) {
  const int lane = LaneFor(Stage::kD2H);
  const bool shared = way_out_ == OutputWay::kRegion;
  std::byte* const to =
      shared ? result_region()->data() + copy.begin : memory_.output_blocks[copy.block].data();
  const Span span{.stage = Stage::kD2H,
                  .track = static_cast<uint32_t>(lane),
                  .index = static_cast<uint64_t>(copy.begin / block_bytes()),
                  .bytes = static_cast<uint64_t>(copy.bytes)};
  submissions_.AddCopy(context_->lanes[lane], shared ? &Lane::CopyOutShared : &Lane::CopyOut, to,
                       ResultAt(copy.begin), copy.bytes,
                       [self = shared_from_this(), copy, span](const Completion& completion) {
                         Deferred later;
                         {
                           MutexLock lock(self->mutex_);
                           if (self->CompletedLocked(span, completion, &later))
                             self->CopiedOutLocked(copy, &later);
                         }
                         self->RunAll(&later);
                         self->ReportDeviceFailure(completion);
                       });
}

void Job::CopiedOutLocked(const Output::Copy& copy, Deferred* later) {
  const bool shared = way_out_ == OutputWay::kRegion;
  if (!shared) output_.Copied(copy);
  if (ResultInRing()) LeaveLocked(RangeAt(*operation_, copy.begin), copy.bytes, later);
  if (shared) WrittenLocked(copy, later);
  DeliverLocked(later);
}

/// A run of the result is in its region. Behind the last one is checked whether that is still whole; else the
/// job must not count as done, or it would be too late to fail.
void Job::WrittenLocked(const Output::Copy& copy, Deferred* later) {
  context_->count(0, 0, copy.bytes, 0);
  if (context_->host_memory) CountCopied(static_cast<uint64_t>(copy.bytes));
  const bool last = output_.IsLastWritten(copy);
  if (last)
    if (const Status status = result_region()->region->Check(); !status.ok())
      return FailLocked(status, later);
  output_.Written(copy);
  if (!last) PumpOutputLocked(later);
}

void Job::DeliverLocked(Deferred* later) {
  while (auto answer = output_.NextAnswer(streams_, InputOverLocked())) {
    OnOutput& on_output = answer->waiter.on_output;
    if (stores() && answer->waiter.stream == 0 && stored_ids_.empty()) {
      storing_ = true;
      later->calls.push_back(
          [self = shared_from_this(), on_output = std::move(on_output)] { self->StoreResult(on_output); });
      continue;
    }
    std::optional<OutputPiece> piece;
    if (answer->piece) piece = PieceLocked(*answer->piece);
    later->calls.push_back(
        [on_output = std::move(on_output), piece = std::move(piece)] { on_output(piece); });
  }
}

/// What holds it gives its place back.
OutputPiece Job::PieceLocked(const Output::Piece& piece) {
  OutputPiece out{.result = piece.result, .offset = piece.offset, .bytes = static_cast<size_t>(piece.bytes)};
  context_->count(0, 0, piece.bytes, 0);
  if (way_out_ == OutputWay::kBlocks) {
    out.data = memory_.output_blocks[piece.in.block].data() + piece.in.at;
    out.hold = std::shared_ptr<const void>(out.data, [self = shared_from_this(), block = piece.in.block](
                                                         const void*) { self->ReturnOutput(block); });
    return out;
  }
  out.data = ResultAt(piece.begin);
  if (ResultInRing()) {
    out.hold = std::shared_ptr<const void>(
        out.data, [self = shared_from_this(), begin = piece.begin, bytes = piece.bytes](const void*) {
          self->ReturnPiece(begin, bytes);
        });
  } else {
    out.hold = shared_from_this();
  }
  return out;
}

void Job::ReturnOutput(int block) {
  Deferred later;
  {
    MutexLock lock(mutex_);
    output_.Return(block);
    PumpOutputLocked(&later);
  }
  RunAll(&later);
}

}  // namespace tilewire::engine
