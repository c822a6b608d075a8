// The result bytes of a job on their way out: what is ready, what is to be copied, who is to get what.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "server/engine/job/output_blocks.h"
#include "server/engine/job/streams.h"
#include "server/engine/job/waiters.h"
#include "server/engine/job/window.h"
#include "server/engine/operation/operation.h"

namespace tilewire::engine {

/// How results leave.
enum class OutputWay : uint8_t {
  kInPlace,  ///< are handed out from where they lie
  kBlocks,   ///< are copied to output blocks and handed out from these
  kRegion,   ///< are copied to a region
  kStay,     ///< stay where kernels write them
};

/// Results lie one after the other in one area and leave as one, ascending; what lies between them is
/// nobody's and never leaves. Invariant: delivered or written ≤ copied ≤ ready; each byte of a result is in
/// one piece, and no piece has bytes of two. Thread-compatible: guarded by its job's mutex.
class Output {
 public:
  /// Bytes of the area that are copied at once.
  struct Copy {
    int64_t begin, bytes;
    int block;  ///< that they are copied to, or, to a region, what counts the copy as under way
  };
  /// Bytes of one result that are handed out at once.
  struct Piece {
    uint32_t result;
    int64_t offset;  ///< in the result,
    int64_t begin;   ///< and in the area
    int64_t bytes;
    OutputBlocks::Piece in;  ///< where they were copied to; nothing where they are handed out in place
  };
  /// What somebody who waits is to be told: a piece, or that nothing is left.
  struct Answer {
    OutputWaiter waiter;
    std::optional<Piece> piece;
  };

  /// `operation` and `ring` outlive it. At most `copies` blocks or copies to a region at a time. `ring`: the
  /// windows that results lie in; null: they lie whole.
  Output(const Operation& operation, OutputWay way, int64_t block_bytes, size_t copies, const Window* ring);

  /// The first `bytes` of the area are there.
  void Ready(int64_t bytes) { ready_ = std::max(ready_, bytes); }
  bool all_ready() const { return ready_ == total_; }
  /// Nothing is left to be copied or handed out.
  bool over() const;

  /// The next copy out, to be begun now; nothing while none can be.
  std::optional<Copy> NextCopy();
  /// Its bytes are in its block, to be handed out.
  void Copied(const Copy& copy) { blocks_.Fill(copy.block, copy.begin, copy.begin + copy.bytes); }
  /// Whether it is the last of all copies to the region that comes to its end.
  bool IsLastWritten(const Copy& copy) const { return written_ + copy.bytes == payload_; }
  /// Its bytes are in the region.
  void Written(const Copy& copy);
  /// Whoever had a piece of the block needs it no more.
  void Return(int block) { blocks_.Return(block); }

  /// At most one waits for a stream.
  void Wait(OutputWaiter waiter) { waiters_.push_back(std::move(waiter)); }
  bool IsAwaited(int stream) const {
    return std::ranges::any_of(waiters_, [stream](const auto& waiter) { return waiter.stream == stream; });
  }
  /// The first of those who wait that can be told something, in the order they asked. Nothing is left for one
  /// who takes output when all of it was taken and the input, too, is `input_over`; the first stream hears it
  /// when the others are done. Who takes none hears it when it has half-closed.
  std::optional<Answer> NextAnswer(const Streams& streams, bool input_over);
  /// All of them, who are told something else.
  std::vector<OutputWaiter> TakeWaiters() { return std::exchange(waiters_, {}); }

  int64_t handed_out_bytes() const { return handed_out_; }
  int64_t written_bytes() const { return written_; }

 private:
  /// Where the run that begins at `offset` ends: with its block; in a ring also with its range, whose slot
  /// must not wait for later ranges.
  int64_t RunEnd(int64_t offset) const;
  std::optional<Piece> NextPiece();

  const Operation& operation_;
  const OutputWay way_;
  const int64_t block_bytes_, total_, payload_;
  const Window* const ring_;
  // Of the area: what is there, a prefix; where to copy next; where to hand out next.
  int64_t ready_ = 0, next_copy_ = 0, next_piece_ = 0;
  int64_t handed_out_ = 0, written_ = 0;  ///< bytes of results
  OutputBlocks blocks_;
  std::vector<OutputWaiter> waiters_;  ///< in the order they asked
};

}  // namespace tilewire::engine
