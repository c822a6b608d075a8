// Which ranges of a job may be computed, and what of the result their end makes ready.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/engine/job/blocks.h"
#include "server/engine/operation/operation.h"

namespace tilewire::engine {

/// Invariant: a range is told once, when every block that has bytes of it is on the device, in all operands
/// that arrive (or, `together`, when every block is). Thread-compatible: guarded by its job's mutex.
class Ranges {
 public:
  struct Span {
    int64_t begin, end;
    bool empty() const { return begin >= end; }
  };

  /// `operation` outlives it. `arriving` of its operands come in the blocks of `grid`, the others are there;
  /// at least one, or nobody asks.
  Ranges(const Operation& operation, const BlockGrid& grid, size_t arriving, bool together);

  /// One operand's block is on the device: the ranges that may be computed now. They follow one another,
  /// since both ends of ranges ascend.
  Span BlockArrived(int64_t index);

  /// The range was computed.
  void Done(int64_t range);
  bool all_done() const { return left_ == 0; }
  int64_t done() const { return operation_.range_count() - left_; }
  /// Bytes of the result, from its begin, that no range is to fill any more. Where ranges fill it.
  int64_t filled_bytes() const;

 private:
  const Operation& operation_;
  const BlockGrid grid_;
  const bool together_;
  std::vector<uint32_t> missing_;  ///< [range]: blocks that it waits for, over all operands
  int64_t blocks_left_;            ///< likewise, of all ranges
  int64_t left_;                   ///< ranges
  std::vector<bool> done_;         ///< [range]; kept only where ranges fill the result
  int64_t prefix_ = 0;             ///< ranges done without a gap
};

}  // namespace tilewire::engine
