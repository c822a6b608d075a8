// The order in which operand bytes are sent: block by block over the operands, A0 B0 A1 B1 …, ascending in
// each, so that kernels can start while later blocks are on their way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace tilewire::client {

/// One message's worth of an operand.
struct ChunkPlan {
  uint32_t operand;
  uint64_t offset;
  uint64_t bytes;
};

/// Hands out every byte of every operand once, obeying the rule of runs. Not thread-safe.
class Schedule {
 public:
  /// `sizes`: bytes of each operand. `block_bytes`: runs start at multiples of this (0: one run).
  /// `window_bytes`: how far apart the operands may be (0: no bound); turns then are no longer than that, so
  /// none ends further beyond the lowest byte that no turn has. Several streams may take turns: one that runs
  /// ahead of a slow one waits at the server, and the one with the lowest turn never has to.
  /// `message_bytes`: most payload of a message, ≥ 16; rounded down to a multiple of 16 so that no element is
  /// cut.
  Schedule(std::vector<uint64_t> sizes, uint64_t block_bytes, uint64_t window_bytes, uint64_t message_bytes)
      : sizes_(std::move(sizes)), sent_(sizes_.size(), 0), message_(message_bytes / 16 * 16) {
    // A multiple of the server's block that cuts no element.
    const uint64_t block = std::lcm<uint64_t>(std::max<uint64_t>(block_bytes, 1), 16);
    // Small blocks are grouped, so that messages stay large.
    turn_ = block >= message_ ? block : message_ / block * block;
    if (window_bytes > 0) turn_ = std::clamp<uint64_t>(window_bytes / block * block, block, turn_);
    turn_end_ = turn_;
  }

  /// The next turn: the rest of a block, or of a group of small ones, of one operand. Nothing once all bytes
  /// were handed out. Turns may be sent by different streams.
  std::optional<ChunkPlan> NextTurn() {
    for (size_t tried = 0; tried <= sizes_.size() && !sizes_.empty(); ++tried) {
      const uint64_t end = std::min(sizes_[operand_], turn_end_);
      if (sent_[operand_] < end) {
        const uint64_t begin = std::exchange(sent_[operand_], end);
        return ChunkPlan{static_cast<uint32_t>(operand_), begin, end - begin};
      }
      if (++operand_ == sizes_.size()) {
        operand_ = 0;
        turn_end_ += turn_;
      }
    }
    return std::nullopt;
  }

  /// Cuts the next message off a turn.
  ChunkPlan CutMessage(ChunkPlan* turn) const {
    const ChunkPlan message{turn->operand, turn->offset, std::min(turn->bytes, message_)};
    turn->offset += message.bytes;
    turn->bytes -= message.bytes;
    return message;
  }

 private:
  std::vector<uint64_t> sizes_, sent_;
  uint64_t message_;
  uint64_t turn_;
  uint64_t turn_end_;  ///< where the current round over the operands ends
  size_t operand_ = 0;
};

}  // namespace tilewire::client
