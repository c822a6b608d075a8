// Host memory that results are copied out through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tilewire::engine {

/// Which output blocks are free, and which runs of the result area the others hold. A run is handed out in
/// pieces, ascending, since a piece is of one result; its block is free again when the last one was taken and
/// every piece came back. Offsets are of the result area. Thread-compatible: guarded by its job's mutex.
class OutputBlocks {
 public:
  explicit OutputBlocks(size_t count);

  bool any_free() const { return !free_.empty(); }
  /// A free one, for a run that is about to be copied: there is any.
  int Take();
  /// Takes one back that nothing is handed out of.
  void Free(int block) { free_.push_back(block); }
  /// The block holds bytes [begin, end), which are no other's.
  void Fill(int block, int64_t begin, int64_t end);

  struct Piece {
    int block;
    int64_t at;  ///< where in the block it begins
  };
  /// The piece at `offset`, of one run; the next to be handed out begins at `next`, less than a block behind
  /// its end. Nothing while it was not copied.
  std::optional<Piece> Lend(int64_t offset, int64_t next);
  /// Whoever had a piece of the block does not need it any more.
  void Return(int block);

 private:
  struct Run {
    int64_t end;
    int block;
  };
  std::vector<int> free_;
  std::vector<int> holders_;     ///< [block]: pieces that are out, and the run itself until its last one is
  std::map<int64_t, Run> runs_;  ///< by where they begin
};

}  // namespace tilewire::engine
