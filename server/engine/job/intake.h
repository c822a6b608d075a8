// The bytes of one stream on their way into a job: checks the rule of runs and fills blocks.
//
// For each operand, chunks form runs: a run starts at a multiple of the block size, ascends without gaps and
// ends at a multiple or at the operand's end; one run of an operand is open at a time. A block is claimed
// when its first byte arrives and committed when its last one does.
//
// A payload crosses once: Take() copies it to its places, counts it and records where the time went. Whoever
// writes to the places himself does what Take() does: BeginChunk(), then NextPlace() and Filled() until
// nothing is left.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "server/engine/job/job.h"

namespace tilewire::engine {

/// Used by one thread at a time, but for blocks_done().
class Intake {
 public:
  /// Of stream `stream` of the job.
  explicit Intake(std::shared_ptr<Job> job, int stream = 0);
  /// Gives unfinished blocks back.
  ~Intake();
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  /// Bytes of one operand, as a message brought them.
  struct Chunk {
    uint32_t operand = 0;
    uint64_t offset = 0;
    std::span<const std::span<const uint8_t>> slices;  ///< in order
    /// When they were received; nothing where nobody waited for them alone.
    std::optional<std::pair<TimePoint, TimePoint>> received = {};
  };
  /// Takes a chunk into the job: as far as there are places, of which `true` says that it was all. After
  /// `false` WhenPlaceFree() and GoOn(); the slices have to stay until then. Fails as BeginChunk().
  Result<bool> Take(const Chunk& chunk);
  /// The same with what is left of the chunk, or why the job failed.
  Result<bool> GoOn();

  /// Begins chunk [offset, offset + bytes) of `operand`. INVALID_ARGUMENT: no such operand, or one
  /// that is not streamed (BAD_VALUE), empty, beyond the end, or against the rule of runs (RUN_RULE).
  Status BeginChunk(uint32_t operand, uint64_t offset, uint64_t bytes);
  /// Where the next bytes of the chunk go and how many at most; nothing while the job has no place for them
  /// (then WhenPlaceFree) or has failed (Job::status).
  std::optional<std::span<std::byte>> NextPlace();
  /// Calls `function` once NextPlace may succeed or the job has failed; see Job::WhenBlockFree.
  void WhenPlaceFree(std::function<void()> function);
  /// `bytes` bytes were written to the last place.
  void Filled(size_t bytes) { Filled(bytes, nullptr); }
  /// Bytes of the chunk that have no place yet.
  uint64_t chunk_left() const { return chunk_left_; }

  /// The stream half-closed: INVALID_ARGUMENT `BYTES_MISSING` when it left a block unfinished.
  Status HalfClosed() const;

  /// Blocks completed so far: what counts as progress. Any thread.
  uint64_t blocks_done() const { return blocks_done_.load(std::memory_order_relaxed); }

 private:
  struct Run {
    int64_t next = -1;                ///< offset that must follow; −1: no run yet
    std::optional<Job::Block> block;  ///< the open block's place, once taken
  };

  /// Copies to places until there is none or nothing is left, which is told.
  bool CopyOn();
  void Gather(std::span<std::byte> place);
  void Filled(size_t bytes, const Span* staged);

  const std::shared_ptr<Job> job_;
  const int stream_;
  const int64_t operand_bytes_, block_bytes_;
  std::vector<Run> runs_;  ///< [operand]
  uint32_t operand_ = 0;   ///< of the chunk
  uint64_t chunk_left_ = 0;
  std::span<const std::span<const uint8_t>> slices_;  ///< of the chunk, from the one to be copied next
  size_t used_ = 0;                                   ///< bytes of that one
  std::atomic<uint64_t> blocks_done_{0};
};

}  // namespace tilewire::engine
