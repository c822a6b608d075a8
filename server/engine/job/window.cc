#include "server/engine/job/window.h"

#include <algorithm>

namespace tilewire::engine {
namespace {
constexpr int64_t kSlotAlignment = 256;  // as device memory has it
}  // namespace

int64_t RangeAt(const Operation& operation, int64_t offset) {
  int64_t low = 0, high = operation.range_count();
  while (low < high) {  // both ends of ranges ascend
    const int64_t middle = low + (high - low) / 2;
    if (operation.range_bytes(middle).end > offset) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

int64_t SlotBytes(const Operation& operation) {
  int64_t most = 0;
  for (int64_t i = 0; i < operation.range_count(); ++i) {
    const ByteInterval bytes = operation.range_bytes(i);
    most = std::max(most, bytes.end - bytes.begin);
  }
  return (most + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

int64_t WindowBytes(const Operation& operation, int64_t slots, int64_t block_bytes) {
  const int64_t total = operation.operands()[0].bytes();
  // From the begin of any block, one block and the window must lie in as many ranges as there are slots. The
  // last block that begins in a range has the fewest bytes of it.
  int64_t least = (total + block_bytes - 1) / block_bytes * block_bytes;
  for (int64_t i = 0; i + slots < operation.range_count(); ++i) {
    const ByteInterval first = operation.range_bytes(i);
    const int64_t begin = (first.end - 1) / block_bytes * block_bytes;
    if (begin >= first.begin) least = std::min(least, operation.range_bytes(i + slots - 1).end - begin);
  }
  return std::max<int64_t>(least / block_bytes - 1, 0) * block_bytes;
}

Window::Window(const Operation& operation, const Ring& ring, int64_t block_bytes, size_t streamed)
    : operation_(operation),
      ring_(ring),
      block_bytes_(block_bytes),
      total_bytes_(operation.operands()[0].bytes()),
      streamed_(streamed),
      left_(static_cast<size_t>(ring.slots)) {
  for (int64_t i = 0; i < ring.slots; ++i) left_[static_cast<size_t>(i)] = RangeLength(i);
}

int64_t Window::RangeLength(int64_t range) const {
  if (range >= operation_.range_count()) return 1;  // a slot that no range needs any more
  const ByteInterval bytes = operation_.range_bytes(range);
  return bytes.end - bytes.begin;
}

int64_t Window::LastRange(int64_t block) const {
  return RangeAt(operation_, std::min((block + 1) * block_bytes_, total_bytes_) - 1);
}

Window::Place Window::PlaceOf(int64_t offset) const {
  const int64_t range = RangeAt(operation_, offset);
  const ByteInterval bytes = operation_.range_bytes(range);
  return {.at = range % ring_.slots * ring_.slot_bytes + offset - bytes.begin, .bytes = bytes.end - offset};
}

bool Window::Beyond(int64_t block) const {
  if (lowest_missing() >= total_bytes_) return false;
  return LastRange(block) >= RangeAt(operation_, lowest_missing()) + ring_.slots;
}

void Window::Committed(int64_t block) {
  const auto place = static_cast<size_t>(block - lowest_block_);
  if (committed_.size() <= place) committed_.resize(place + 1);
  ++committed_[place];
  for (; !committed_.empty() && committed_.front() == streamed_; ++lowest_block_) committed_.pop_front();
}

void Window::Leave(int64_t range, int64_t bytes) {
  const auto left_of = [this](int64_t r) -> int64_t& { return left_[static_cast<size_t>(r % ring_.slots)]; };
  left_of(range) -= bytes;
  for (; left_of(first_kept_) == 0; ++first_kept_)
    left_of(first_kept_) = RangeLength(first_kept_ + ring_.slots);  // the slot's next range
}

}  // namespace tilewire::engine
