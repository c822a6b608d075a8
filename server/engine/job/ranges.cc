#include "server/engine/job/ranges.h"

#include "server/engine/job/window.h"

namespace tilewire::engine {

Ranges::Ranges(const Operation& operation, const BlockGrid& grid, size_t arriving, bool together)
    : operation_(operation),
      grid_(grid),
      together_(together),
      missing_(static_cast<size_t>(operation.range_count())),
      blocks_left_(grid.count() * static_cast<int64_t>(arriving)),
      left_(operation.range_count()) {
  if (operation.ranges_fill_result()) done_.assign(missing_.size(), false);
  for (size_t i = 0; i < missing_.size(); ++i) {
    const ByteInterval bytes = operation.range_bytes(static_cast<int64_t>(i));
    const int64_t blocks = (bytes.end - 1) / grid.block_bytes - bytes.begin / grid.block_bytes + 1;
    missing_[i] = static_cast<uint32_t>(blocks * static_cast<int64_t>(arriving));
  }
}

Ranges::Span Ranges::BlockArrived(int64_t index) {
  const int64_t begin = grid_.begin(index), end = grid_.end(index), count = operation_.range_count();
  Span complete{count, count};
  for (int64_t i = RangeAt(operation_, begin); i < count && operation_.range_bytes(i).begin < end; ++i) {
    if (--missing_[static_cast<size_t>(i)] > 0) continue;
    if (complete.begin == count) complete.begin = i;
    complete.end = i + 1;
  }
  --blocks_left_;
  if (together_) return blocks_left_ == 0 ? Span{0, count} : Span{count, count};
  return complete;
}

void Ranges::Done(int64_t range) {
  --left_;
  if (done_.empty()) return;
  done_[static_cast<size_t>(range)] = true;
  while (prefix_ < operation_.range_count() && done_[static_cast<size_t>(prefix_)]) ++prefix_;
}

int64_t Ranges::filled_bytes() const {
  return prefix_ == 0 ? 0 : operation_.range_bytes(prefix_ - 1).end;
}

}  // namespace tilewire::engine
