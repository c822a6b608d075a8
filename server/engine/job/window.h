// Windowed operation: jobs whose arrays are larger than the device's memory.
//
// Ranges stay what they are, so the bits do too; but only some of them have a place on the device at a time.
// Each array that ranges read or fill is a ring of slots, and range i lies in slot i mod S:
//
//   ranges    r0 r1 r2 | r3 r4 r5 r6 | r7 r8 …      F = 3: r0 to r2 are computed and their output has left
//   slots                s3 s0 s1 s2                S = 4: blocks that touch r7 have to wait
//
// A block is taken when every range that it touches has a slot, which is when all touched ranges are < F + S.
//
// Why nothing waits for ever. Let b be the lowest block that is not complete in every operand, and f the
// range that b begins in. All ranges below f are complete: the device computes them and their output leaves
// as long as the client reads, both without any further input. (Output is cut at the ends of ranges, so none
// waits for a later range.) So F reaches f, and whoever waits for a range < f + S is served. WindowBytes() is
// chosen such that this holds for every byte less than a window away from b. A client that never sends a byte
// more than a window beyond the lowest one that it has not sent is always served: the stream that is to bring
// the lowest missing byte waits, if at all, with a chunk that it sent before, which is within the window.
// Other streams that ran ahead just wait for that one. Only when every stream that has not half-closed waits
// for a range >= f + S will b never come: then the job is refused (OUT_OF_WINDOW).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "server/engine/operation/operation.h"

namespace tilewire::engine {

/// The rings of a windowed job. Plain data.
struct Ring {
  int64_t slots = 0;         ///< 0: the job is not windowed, its arrays lie whole
  int64_t slot_bytes = 0;    ///< the largest range, a multiple of 256
  int64_t window_bytes = 0;  ///< WindowBytes()
  int64_t bytes() const { return slots * slot_bytes; }
};

/// Blocks of an operand of a windowed job, at most: what is kept of each is small, but there is no other
/// bound.
inline constexpr int64_t kMaxWindowedBlocks = int64_t{1} << 24;

/// The range that holds byte `offset` of an operand: the first one that ends after it.
int64_t RangeAt(const Operation& operation, int64_t offset);
/// Bytes of a slot that holds any range of `operation`.
int64_t SlotBytes(const Operation& operation);
/// How far the end of a chunk may lie beyond the lowest byte that was not sent, with `slots` slots and blocks
/// of `block_bytes`: a multiple of that; 0: not even two operands could alternate block by block.
int64_t WindowBytes(const Operation& operation, int64_t slots, int64_t block_bytes);

/// Which ranges of a job have a slot. Thread-compatible: guarded by its job's mutex, but for PlaceOf.
class Window {
 public:
  /// `operation` (see Operation::Windowed) outlives it. `streamed` of its operands pass through rings.
  Window(const Operation& operation, const Ring& ring, int64_t block_bytes, size_t streamed);

  struct Place {
    int64_t at;     ///< offset in the ring
    int64_t bytes;  ///< that follow there: up to the end of the range
  };
  /// Where byte `offset` of an array lies. Any thread.
  Place PlaceOf(int64_t offset) const;

  /// Whether every range that the block touches has a slot.
  bool Admits(int64_t block) const { return LastRange(block) < first_kept_ + ring_.slots; }
  /// Whether the block needs a slot that stays taken until bytes come that have not come yet.
  bool Beyond(int64_t block) const;
  /// One operand's block is complete.
  void Committed(int64_t block);
  /// The lowest byte that begins a block which some operand lacks.
  int64_t lowest_missing() const { return lowest_block_ * block_bytes_; }
  int64_t window_bytes() const { return ring_.window_bytes; }
  /// `bytes` of a range are needed no more: of its output, where ranges fill the result, else of its input.
  void Leave(int64_t range, int64_t bytes);

 private:
  int64_t RangeLength(int64_t range) const;
  int64_t LastRange(int64_t block) const;

  const Operation& operation_;
  const Ring ring_;
  const int64_t block_bytes_, total_bytes_;
  const size_t streamed_;
  int64_t lowest_block_ = 0;  ///< not committed in every operand
  /// Of the lowest block and those above: in how many operands each is committed. As short as the rings,
  /// since other blocks cannot be taken.
  std::deque<uint8_t> committed_;
  int64_t first_kept_ = 0;     ///< F: ranges below it need their slots no more
  std::vector<int64_t> left_;  ///< [slot]: bytes of its range that are still needed
};

}  // namespace tilewire::engine
