// The blocks of a job's input: which were begun, where their bytes may go, and who waits for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "server/engine/job/waiters.h"
#include "server/engine/job/window.h"

namespace tilewire::engine {

/// Invariant: a block is claimed at most once; a staging block is free or with whoever took it, never both;
/// nobody waits who could go on, once Wake() followed on what was freed. Thread-compatible: guarded by its
/// job's mutex.
class InputBlocks {
 public:
  /// The right to write a block's bytes.
  struct Block {
    int staging = -1;  ///< index of the staging block; −1: none, they go to the operand itself
  };

  /// Of `operands` with `blocks` blocks each. `staging` blocks take their bytes; nothing: these go straight
  /// to their place. `window`, of a windowed job, outlives it.
  InputBlocks(size_t operands, int64_t blocks, std::optional<size_t> staging, const Window* window);
  /// The operand's blocks come over streams, so that they can be claimed and missed.
  void Stream(size_t operand);
  /// There are no places until they are opened: whoever may go on for that is to be woken.
  void Close() { open_ = false; }
  void Open() { open_ = true; }

  /// False when the block was claimed before.
  bool Claim(uint32_t operand, int64_t index);
  /// Blocks that were not claimed.
  int64_t missing() const;

  /// Whether there is a place for a block's bytes, and the window has reached it.
  bool MayTake(int64_t index) const;
  /// Nothing where it may not.
  std::optional<Block> Take(int64_t index);
  /// Takes a place back; whoever may go on for that is to be woken.
  void Free(Block block);

  /// At most one waits for a stream.
  void Wait(BlockWaiter waiter) { waiters_.push_back(std::move(waiter)); }
  /// What that stream waits for, or null.
  const BlockWaiter* WaiterOf(int stream) const;
  /// Moves the functions of those who may go on to `calls`, in the order in which they came.
  void Wake(std::vector<std::function<void()>>* calls);
  /// Of all.
  void WakeAll(std::vector<std::function<void()>>* calls);

  /// A block of `bytes` is complete, wherever it came from: over a stream,
  void Arrived(int64_t bytes);
  /// or from a region.
  void ArrivedFromRegion(int64_t bytes);
  uint64_t blocks_arrived() const { return blocks_arrived_; }
  uint64_t stream_bytes() const { return stream_bytes_; }
  uint64_t region_bytes() const { return region_bytes_; }

  /// Nothing more comes over streams.
  void End() { ended_ = true; }
  bool ended() const { return ended_; }

 private:
  const int64_t blocks_;
  const bool staged_;
  const Window* const window_;
  std::vector<std::vector<bool>> claimed_;  ///< [operand][block]; empty where it does not come over streams
  std::vector<int> free_;                   ///< staging blocks
  std::vector<BlockWaiter> waiters_;
  uint64_t blocks_arrived_ = 0, stream_bytes_ = 0, region_bytes_ = 0;
  bool open_ = true, ended_ = false;
};

}  // namespace tilewire::engine
