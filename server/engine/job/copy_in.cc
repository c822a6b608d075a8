// Blocks on their way to the device: from staging blocks, and from regions, where all of them are there at
// once.
#include <utility>

#include "server/engine/job/job.h"

namespace tilewire::engine {

/// A block of a windowed job may lie in several slots, hence in several copies: on one lane, so that the last
/// one to be done is the last one.
void Job::CopyInLocked(uint32_t operand, int64_t index, Block block) {
  const int lane = LaneFor(Stage::kH2D);
  launched_ = true;
  Span span{.stage = Stage::kH2D,
            .track = static_cast<uint32_t>(lane),
            .index = static_cast<uint64_t>(index),
            .operand = operand};
  int64_t at = grid_.begin(index);
  const bool shared = block.staging < 0;
  const std::byte* from =
      shared ? RegionToCopy(operand).data() + at : memory_.input_blocks[block.staging].data();
  const auto copy = shared ? &Lane::CopyInShared : &Lane::CopyIn;
  for (const int64_t end = grid_.end(index); at < end;) {
    const std::span<std::byte> to = PieceAt(memory_.buffers.operands[operand], at, end - at);
    at += static_cast<int64_t>(to.size());
    span.bytes = to.size();
    submissions_.AddCopy(
        context_->lanes[lane], copy, to.data(), from, to.size(),
        [self = shared_from_this(), span, index, block, last = at == end](const Completion& completion) {
          Deferred after;
          {
            MutexLock inner(self->mutex_);
            self->CompletedLocked(span, completion, &after);
            if (last) self->BlockCopiedLocked(index, block, &after);
          }
          self->RunAll(&after);
          self->ReportDeviceFailure(completion);
        });
    from += to.size();
  }
}

void Job::BlockCopiedLocked(int64_t index, Block block, Deferred* later) {
  if (block.staging >= 0) {
    input_.Free(block);
    input_.Wake(&later->calls);
  } else if (region_copies_.Done()) {
    // What was cut off before the last copy may have been missed by copies: pinned pages stay where they
    // were.
    if (Status status = CheckRegionsLocked(); !status.ok()) FailLocked(status, later);
  } else {
    PumpRegionsLocked(later);
  }
  if (status_.ok() && !ordered_) BlockArrivedLocked(index, later);
}

void Job::PumpRegionsLocked(Deferred* later) {
  if (!region_copies_.any()) return;
  while (status_.ok()) {
    const auto next = region_copies_.Next();
    if (!next || (window_ && !window_->Admits(next->index))) break;
    region_copies_.Begin();
    const int64_t bytes = grid_.length(next->index);
    input_.ArrivedFromRegion(bytes);
    context_->count(1, bytes, 0, 0);
    if (context_->host_memory) CountCopied(static_cast<uint64_t>(bytes));
    if (window_) window_->Committed(next->index);
    CopyInLocked(next->operand, next->index, Block{});
    if (ordered_) BlockArrivedLocked(next->index, later);
  }
  CheckWindowLocked(later);  // whose bytes streams wait for may have changed
}

Status Job::CheckRegionsLocked() const {
  for (const uint32_t operand : region_copies_.operands())
    if (Status status = RegionToCopy(operand).region->Check(); !status.ok()) return status;
  return {};
}

}  // namespace tilewire::engine
