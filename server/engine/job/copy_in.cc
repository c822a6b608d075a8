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
  int64_t at = index * block_bytes();
  const bool shared = block.staging < 0;
  const std::byte* from =
      shared ? resources_.regions[operand].data() + at : resources_.input_blocks[block.staging].data();
  const auto copy = shared ? &Lane::CopyInShared : &Lane::CopyIn;
  for (const int64_t end = at + BlockLength(operand_bytes(), index); at < end;) {
    const std::span<std::byte> to = PieceAt(resources_.buffers.operands[operand], at, end - at);
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
    free_blocks_.push_back(block.staging);
    WakeBlockWaitersLocked(later);
  } else if (const auto blocks = static_cast<int64_t>(in_regions_.size()) * BlockCount();
             ++region_done_ == blocks) {
    // What was cut off before the last copy may have been missed by copies: pinned pages stay where they
    // were.
    if (Status status = CheckRegionsLocked(); !status.ok()) FailLocked(status, later);
  } else {
    PumpRegionsLocked(later);
  }
  if (status_.ok() && !ordered_) BlockArrivedLocked(index, later);
}

void Job::PumpRegionsLocked(Deferred* later) {
  const auto operands = static_cast<int64_t>(in_regions_.size());
  const int64_t copies = MostCopies();
  while (status_.ok() && region_begun_ < operands * BlockCount() && region_begun_ - region_done_ < copies) {
    const int64_t index = region_begun_ / operands;
    if (window_ && !window_->Admits(index)) break;
    const uint32_t operand = in_regions_[static_cast<size_t>(region_begun_++ % operands)];
    const int64_t bytes = BlockLength(operand_bytes(), index);
    ++blocks_arrived_;
    region_in_ += static_cast<uint64_t>(bytes);
    context_->count(1, bytes, 0, 0);
    if (context_->host_memory) CountCopied(static_cast<uint64_t>(bytes));
    if (window_) window_->Committed(index);
    CopyInLocked(operand, index, Block{});
    if (ordered_) BlockArrivedLocked(index, later);
  }
  if (operands > 0) CheckWindowLocked(later);  // whose bytes streams wait for may have changed
}

Status Job::CheckRegionsLocked() const {
  for (const uint32_t operand : in_regions_)
    if (Status status = resources_.regions[operand].region->Check(); !status.ok()) return status;
  return {};
}

}  // namespace tilewire::engine
