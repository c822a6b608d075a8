// How far the copies from regions have come.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tilewire::engine {

/// The blocks of all operands that are copied from regions, block by block over these operands. Invariant:
/// done ≤ begun ≤ done + the bound. Thread-compatible: guarded by its job's mutex.
class RegionCopies {
 public:
  struct Block {
    uint32_t operand;
    int64_t index;
  };

  /// `operands` of `blocks` blocks each; at most `most` under way at once.
  RegionCopies(std::vector<uint32_t> operands, int64_t blocks, int64_t most)
      : operands_(std::move(operands)), most_(most), total_(count() * blocks) {}

  const std::vector<uint32_t>& operands() const { return operands_; }
  bool any() const { return !operands_.empty(); }
  /// The block to be begun next; nothing while enough are under way, and behind the last.
  std::optional<Block> Next() const {
    if (begun_ == total_ || begun_ - done_ >= most_) return std::nullopt;
    return Block{operands_[static_cast<size_t>(begun_ % count())], begun_ / count()};
  }
  void Begin() { ++begun_; }
  /// One came to its end. True for the last of all.
  bool Done() { return ++done_ == total_; }
  /// Below it all blocks of all these operands were begun, where there are any.
  int64_t lowest_block() const { return begun_ / count(); }

 private:
  int64_t count() const { return static_cast<int64_t>(operands_.size()); }

  const std::vector<uint32_t> operands_;
  const int64_t most_, total_;
  int64_t begun_ = 0, done_ = 0;
};

}  // namespace tilewire::engine
