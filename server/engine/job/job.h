// One operation from admission to reply.
//
//   Intake (one a stream) ──blocks──> Job ──CopyIn──> lanes ──completions──> ranges whose bytes are all there
//   ──Launch──> lanes ──completions──> result bytes that are ready ──CopyOut──> output blocks ──pieces──>
//   whoever asks for output
//
// A full block is copied and freed without waiting for any other block, operand or output. Ranges, never
// blocks, are computed on, so the result does not depend on how bytes arrive.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/base/timer.h"
#include "server/engine/device/device.h"
#include "server/engine/job/options.h"
#include "server/engine/job/output_blocks.h"
#include "server/engine/job/span_log.h"
#include "server/engine/job/submissions.h"
#include "server/engine/job/waiters.h"
#include "server/engine/job/window.h"
#include "server/engine/operation/operation.h"

namespace tilewire::engine {

/// Thread-safe. Lives as long as a shared_ptr to it, a piece of its output, or a submission of it on a lane.
class Job : public std::enable_shared_from_this<Job> {
 public:
  Job(std::string id, std::unique_ptr<Operation> operation, const JobOptions& options,
      const JobContext* context, JobResources resources);

  ~Job();
  /// A timer to cancel when the job is gone.
  void SetDeadlineTimer(Timer::Id id, Timer* timer) {
    deadline_timer_ = id;
    timer_ = timer;
  }

  const std::string& id() const { return id_; }
  const std::string& identity() const { return identity_; }
  const Operation& operation() const { return *operation_; }
  int64_t block_bytes() const { return resources_.block_bytes; }
  /// Whether the operand's bytes come over streams: it is neither a resident array nor in a region.
  bool streamed(uint32_t operand) const {
    return !resources_.residents[operand] && !resources_.regions[operand];
  }
  /// Whether any operand's do.
  bool takes_input() const { return streamed_ > 0; }
  /// Whether the results stay on the device, as arrays: then there is no output.
  bool stores() const { return stores_; }
  /// Where the results are written, each at its Problem::result_offset(): then there is no output either.
  /// Null region: nowhere.
  const RegionPart& result_region() const { return resources_.result_region; }
  /// Whether the results are told by NextOutput().
  bool hands_out() const { return !stores_ && !result_region(); }
  /// The id of a result's array; empty until stream 0 was told that nothing is left.
  std::string stored_id(size_t result = 0) const;
  /// Starts what needs no input. Once, before anything else.
  void Begin();
  /// How far the end of a chunk may lie beyond the lowest byte of any operand that was not sent; 0: any bytes
  /// may come at any time. Output of a windowed job must be taken while input is brought.
  int64_t window_bytes() const { return resources_.ring.window_bytes; }

  // --- input; used by Intake -------------------------------------------------------------------
  /// The right to write a block's bytes.
  struct Block {
    int staging = -1;  ///< index of the staging block; −1: none, they go to the operand itself
  };
  /// Registers that block `index` of `operand` begins to arrive. INVALID_ARGUMENT `RUN_RULE` when it did
  /// before.
  Status ClaimBlock(uint32_t operand, int64_t index);
  /// A place for a claimed block; nothing while every staging block is in use or the window has not reached
  /// it, or when the job has failed.
  std::optional<Block> TakeBlock(int64_t index);
  /// Where byte `offset` of `operand` goes, which lies in `block`, and how many of the `bytes` from there on
  /// fit, 1 or more.
  std::span<std::byte> PlaceIn(const Block& block, uint32_t operand, int64_t offset, int64_t bytes) const;
  /// The block holds all its bytes: copies it to its place and frees it.
  void CommitBlock(uint32_t operand, int64_t index, Block block);
  /// Gives an unfinished block back unused.
  void ReturnBlock(Block block);
  /// Calls `function` once TakeBlock(index) may succeed or the job has failed; maybe at once. Fails the job
  /// with FAILED_PRECONDITION `OUT_OF_WINDOW` when all streams that have not half-closed wait for blocks
  /// beyond the window, since none of them will ever come.
  void WhenBlockFree(std::function<void()> function, int stream = 0, int64_t index = 0);
  /// The stream half-closed. Once all have, fails the job with INVALID_ARGUMENT `BYTES_MISSING` when bytes
  /// are missing.
  void InputEnded(int stream = 0);
  /// The caller has nothing better to do than to wait for the result: runs a small job's work on its thread,
  /// for a moment at most. Ends what was announced: always to be called after JobOptions::helped, but where
  /// Await() is until it says no.
  void Help();
  /// The caller announced help, and kernels on operands that are there are all that anybody waits for: it may
  /// Await() the job again and again, doing other short things in between, instead of Help().
  bool awaited() const { return help_announced_.load() && MayBeAwaited(); }
  /// Looks after the job's lane for some microseconds, others' work included. False once there is nothing to
  /// wait for any more, or it takes longer than anybody should be awake.
  bool Await();

  // --- streams ---------------------------------------------------------------------------------
  // A job is carried by stream 0, which opened it, and by those that joined. Any stream may bring any block
  // and take any run of output; each run goes to one of them.
  /// How many streams may carry the job, the first included.
  int max_streams() const { return resources_.streams; }
  /// How many carry it, 1 or more; those that have ended count too.
  int streams() const;
  /// Another stream carries the job from now on: its number. FAILED_PRECONDITION `JOIN_LATE` once the first
  /// stream half-closed or, where no input is to come, all output was handed out; RESOURCE_EXHAUSTED `LIMIT`
  /// beyond max_streams(), or why the job failed.
  Result<int> Join();
  /// A joined stream ended well, its output taken.
  void StreamDone(int stream);
  /// A stream ended in any other way: fails the job, for the others with UNAVAILABLE `STREAM_LOST`.
  void StreamLost(int stream, const Status& why);

  // --- output ----------------------------------------------------------------------------------
  /// Asks for the next run of result bytes, ascending; one request a stream at a time. Nothing is left for a
  /// joined stream once every run was handed out, for the first one when the joined ones are done too.
  void NextOutput(OnOutput on_output) { NextOutput(0, true, std::move(on_output)); }
  /// With `take` false the stream takes no output: it is told that nothing is left when it has half-closed.
  void NextOutput(int stream, bool take, OnOutput on_output);

  // --- life --------------------------------------------------------------------------------------
  /// Ends the job: nothing more is launched, waiters are told. The first reason stays. No-op after the last
  /// output.
  void Fail(const Status& status);
  /// Why it failed, or OK; as `stream` is to be told.
  Status status(int stream = 0) const;
  /// Whether work was given to the device.
  bool launched() const;
  /// Records a span that the caller observed (queue, receive, stage, send).
  void AddSpan(const Span& span);
  /// The caller copied array bytes with the CPU: payload out of messages, results into them.
  void CountCopied(uint64_t bytes) {
    bytes_copied_.fetch_add(bytes, std::memory_order_relaxed);
    context_->count_copied(bytes);
  }
  /// Stage times so far and counts.
  Timing timing() const;

 private:
  /// Copies from and to regions that are under way at once: enough to hide the waits between them, and few
  /// enough for other jobs to get on the lanes.
  static constexpr int64_t kCopiesPerLane = 4;
  struct Stream {
    bool half_closed = false;
    bool done = false;
  };

  int64_t operand_bytes() const { return operation_->operands()[0].bytes(); }
  int64_t BlockLength(int64_t total, int64_t index) const {
    return std::min(block_bytes(), total - index * block_bytes());
  }
  int64_t BlockCount() const { return (operand_bytes() + block_bytes() - 1) / block_bytes(); }
  void CountMissing() TILEWIRE_REQUIRES(mutex_);
  /// The lane for a stage's next piece of work, counted as used.
  int LaneFor(Stage stage) TILEWIRE_REQUIRES(mutex_);
  /// Whether copies in, copies out and kernels keep to lanes of their own.
  bool HasStageLanes() const { return !context_->host_memory && lanes_ > 2; }
  /// Copies from regions, and copies to one, that may be under way.
  int64_t MostCopies() const { return HasStageLanes() ? kCopiesPerLane : kCopiesPerLane * lanes_; }
  /// Where the bytes from `offset` on of an operand at `base` lie: `bytes` of them, or as many as are in one
  /// piece.
  std::span<std::byte> PieceAt(std::byte* base, int64_t offset, int64_t bytes) const;
  /// Where byte `offset` of the result area lies; what OutputEnd() bounds follows there in one piece.
  std::byte* ResultAt(int64_t offset) const;
  bool ResultInRing() const { return window_ && operation_->ranges_fill_result(); }
  /// What the work of a range is given: whole arrays, or the slots of that range.
  Buffers BuffersOf(int64_t range) const;
  /// Where the run of output that begins at `offset` ends: with its block; of a windowed job also with its
  /// range, whose slot must not wait for later ranges.
  int64_t OutputEnd(int64_t offset) const;
  // Suffix Locked: mutex_ is held. What must run without it goes to `later` and, for lanes, to submissions_.
  bool MayTakeLocked(int64_t index) const TILEWIRE_REQUIRES(mutex_) {
    return (resources_.inputs_in_place || !free_blocks_.empty()) && (!window_ || window_->Admits(index));
  }
  void WakeBlockWaitersLocked(Deferred* later) TILEWIRE_REQUIRES(mutex_);
  void CheckWindowLocked(Deferred* later) TILEWIRE_REQUIRES(mutex_);
  /// `bytes` of range `range` of a windowed job are needed no more; see Window::Leave.
  void LeaveLocked(int64_t range, int64_t bytes, Deferred* later) TILEWIRE_REQUIRES(mutex_);
  void CopyInLocked(uint32_t operand, int64_t index, Block block) TILEWIRE_REQUIRES(mutex_);
  /// Copies blocks of operands that lie in regions, block by block over these, as far as there is room.
  void PumpRegionsLocked(Deferred* later) TILEWIRE_REQUIRES(mutex_);
  /// REGION_SHRUNK where a region of the job is no longer what it was.
  Status CheckRegionsLocked() const TILEWIRE_REQUIRES(mutex_);
  void BlockCopiedLocked(int64_t index, Block block, Deferred* later) TILEWIRE_REQUIRES(mutex_);
  void BlockArrivedLocked(int64_t index, Deferred* later) TILEWIRE_REQUIRES(mutex_);
  /// Of a job that HasStageLanes().
  std::span<Lane* const> KernelLanes() const;
  static void AwaitKernels(std::span<Lane* const> lanes);
  void LaunchRangeLocked(int64_t range, Deferred* later) TILEWIRE_REQUIRES(mutex_);
  void RangeDoneLocked(int64_t range, Deferred* later) TILEWIRE_REQUIRES(mutex_);
  void FinishLocked(Deferred* later) TILEWIRE_REQUIRES(mutex_);
  void ResultReadyLocked(int64_t bytes, Deferred* later) TILEWIRE_REQUIRES(mutex_);
  void PumpOutputLocked(Deferred* later) TILEWIRE_REQUIRES(mutex_);
  void StartCopyOutLocked(int64_t offset, int64_t bytes, int buffer) TILEWIRE_REQUIRES(mutex_);
  void WrittenLocked(int64_t bytes, int buffer, Deferred* later) TILEWIRE_REQUIRES(mutex_);
  void ReturnOutput(int buffer);
  void ReturnPiece(int64_t offset, int64_t bytes);
  void DeliverLocked(Deferred* later) TILEWIRE_REQUIRES(mutex_);
  /// Hands the result over to the store and tells stream 0.
  void StoreResult(const OnOutput& on_output);
  bool EndLocked(const OutputWaiter& waiter) const TILEWIRE_REQUIRES(mutex_);
  std::optional<OutputPiece> NextPieceLocked() TILEWIRE_REQUIRES(mutex_);
  void FailLocked(const Status& status, Deferred* later) TILEWIRE_REQUIRES(mutex_);
  const Status& StatusLocked(int stream) const TILEWIRE_REQUIRES(mutex_) {
    return stream == lost_stream_ ? lost_status_ : status_;
  }
  /// Records the span, whose times are the completion's; on failure fails the job. True when the job goes on.
  bool CompletedLocked(Span span, const Completion& completion, Deferred* later) TILEWIRE_REQUIRES(mutex_);
  uint64_t RangeBytes(int64_t range) const TILEWIRE_REQUIRES(mutex_);  ///< that it reads, of all operands
  void ReportDeviceFailure(const Completion& completion);
  /// Gives lanes what was decided for them and does the rest of `later`.
  void RunAll(Deferred* later) TILEWIRE_EXCLUDES(mutex_);
  bool EverythingTakenLocked() const TILEWIRE_REQUIRES(mutex_);
  bool JoinedDoneLocked() const TILEWIRE_REQUIRES(mutex_);
  const std::string id_, identity_;
  const std::unique_ptr<Operation> operation_;
  const JobContext* const context_;
  const bool overlap_;
  const uint32_t lanes_;  ///< of the context's, from the first
  JobResources resources_;
  const std::vector<uint32_t> in_regions_;  ///< operands whose bytes are copied from regions
  const size_t arriving_;                   ///< operands that are not there: these, and
  const size_t streamed_;                   ///< those whose bytes come over streams
  const bool stores_;
  Timer* timer_ = nullptr;
  Timer::Id deadline_timer_ = 0;

  /// The job has one lane, which runs submissions in order: what depends on a submission is enqueued right
  /// behind it instead of when its completion was noticed. Spares a small request the waits in between.
  const bool ordered_;
  /// Small, and touching no region: what others can take away is left to lanes and workers.
  bool MayBeHelped() const { return context_->small && in_regions_.empty() && !result_region(); }
  /// Not where lanes compute, which takes as long as it takes.
  bool MayBeAwaited() const {
    return !context_->small && !context_->host_memory && arriving_ == 0 && resources_.output_in_place;
  }
  /// The one of the first kernel.
  Lane* HelpedLane() const { return context_->lanes[HasStageLanes() ? 1 : 0]; }
  void AnnounceHelp();
  /// After an announcement that still stands.
  void WithdrawHelp();
  std::atomic<bool> help_announced_{false};
  TimePoint await_until_;
  /// A result in place is read, and one that is stored or in a region of device memory used, without a
  /// submission of this job: it is ready when the last completion came.
  bool ResultWaits() const { return resources_.output_in_place || stores_ || resources_.result_there; }

  Submissions submissions_;
  mutable Mutex mutex_;
  SpanLog spans_ TILEWIRE_GUARDED_BY(mutex_);
  Status status_ TILEWIRE_GUARDED_BY(mutex_);
  int lost_stream_ TILEWIRE_GUARDED_BY(mutex_) = -1;  ///< the stream whose end failed the job,
  Status lost_status_ TILEWIRE_GUARDED_BY(mutex_);    ///< and what it is told instead of status_
  std::vector<Stream> streams_ TILEWIRE_GUARDED_BY(mutex_){1};
  uint32_t next_lane_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t lanes_used_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< bit set
  // Input.
  std::vector<std::vector<bool>> claimed_ TILEWIRE_GUARDED_BY(mutex_);  ///< [operand][block]
  std::vector<int> free_blocks_ TILEWIRE_GUARDED_BY(mutex_);
  std::vector<BlockWaiter> block_waiters_ TILEWIRE_GUARDED_BY(mutex_);  ///< at most one a stream
  std::optional<Window> window_;  ///< of a windowed job; under mutex_, but for its PlaceOf
  bool input_ended_ TILEWIRE_GUARDED_BY(mutex_) = false;
  int64_t blocks_left_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< not yet on the device, over all operands
  /// Of operands in regions, block by block over these: begun, and done.
  int64_t region_begun_ TILEWIRE_GUARDED_BY(mutex_) = 0, region_done_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t blocks_arrived_ TILEWIRE_GUARDED_BY(mutex_) = 0, bytes_arrived_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t region_in_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< bytes read from regions
  std::atomic<uint64_t> bytes_copied_{0};               ///< by the CPU, either way
  // Compute.
  std::vector<uint32_t> missing_
      TILEWIRE_GUARDED_BY(mutex_);  ///< [range]: blocks it waits for, over all operands
  int64_t ranges_left_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  bool launched_ TILEWIRE_GUARDED_BY(mutex_) = false;
  // Output.
  bool storing_ TILEWIRE_GUARDED_BY(mutex_) =
      false;  ///< the store was given the result; only it can still refuse it
  std::vector<std::string> stored_ids_ TILEWIRE_GUARDED_BY(mutex_);  ///< [result]
  std::vector<bool> range_done_ TILEWIRE_GUARDED_BY(mutex_);  ///< kept only where output may leave early
  int64_t done_prefix_ TILEWIRE_GUARDED_BY(mutex_) = 0;       ///< ranges done without a gap
  // Of the result area: what is on the device, a prefix; where to copy out next; where to deliver next.
  int64_t ready_bytes_ TILEWIRE_GUARDED_BY(mutex_) = 0, next_copy_ TILEWIRE_GUARDED_BY(mutex_) = 0,
                       next_offset_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  int64_t region_out_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< bytes of results written to a region
  uint64_t bytes_out_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< delivered
  OutputBlocks output_blocks_ TILEWIRE_GUARDED_BY(mutex_);
  std::vector<OutputWaiter> output_waiters_
      TILEWIRE_GUARDED_BY(mutex_);  ///< at most one a stream, in the order they asked
};

}  // namespace tilewire::engine
