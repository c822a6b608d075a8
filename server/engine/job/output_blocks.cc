#include "server/engine/job/output_blocks.h"

namespace tilewire::engine {

OutputBlocks::OutputBlocks(size_t count) : holders_(count) {
  for (size_t i = 0; i < count; ++i) free_.push_back(static_cast<int>(i));
}

int OutputBlocks::Take() {
  const int block = free_.back();
  free_.pop_back();
  return block;
}

void OutputBlocks::Fill(int block, int64_t begin, int64_t end) {
  holders_[block] = 1;
  runs_.emplace(begin, Run{end, block});
}

std::optional<OutputBlocks::Piece> OutputBlocks::Lend(int64_t offset, int64_t next) {
  const auto run = runs_.begin();
  if (run == runs_.end() || run->first > offset) return std::nullopt;
  const Piece piece{run->second.block, offset - run->first};
  ++holders_[piece.block];
  if (next >= run->second.end) {
    --holders_[piece.block];
    runs_.erase(run);
  }
  return piece;
}

void OutputBlocks::Return(int block) {
  if (--holders_[block] == 0) free_.push_back(block);
}

}  // namespace tilewire::engine
