// One operation from admission to reply.
//
//   Intake (one a stream) ──blocks──> Job ──CopyIn──> lanes ──completions──> ranges whose bytes are all there
//   ──Launch──> lanes ──completions──> result bytes that are ready ──CopyOut──> output blocks ──pieces──>
//   whoever asks for output
//
// A full block is copied and freed without waiting for any other block, operand or output. Ranges, never
// blocks, are computed on, so the result does not depend on how bytes arrive.
//
// The job is the monitor: one mutex, under which parts that have none of their own (input blocks, ranges,
// output, streams, copies from regions) say what happens next, and the job passes it from one to the other.
#pragma once

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
#include "server/engine/job/blocks.h"
#include "server/engine/job/help.h"
#include "server/engine/job/input_blocks.h"
#include "server/engine/job/options.h"
#include "server/engine/job/output.h"
#include "server/engine/job/ranges.h"
#include "server/engine/job/region_copies.h"
#include "server/engine/job/span_log.h"
#include "server/engine/job/streams.h"
#include "server/engine/job/submissions.h"
#include "server/engine/job/waiters.h"
#include "server/engine/job/window.h"
#include "server/engine/operation/operation.h"

namespace tilewire::engine {

/// Thread-safe. Lives as long as a shared_ptr to it, a piece of its output, or a submission of it on a lane.
class Job : public std::enable_shared_from_this<Job> {
 public:
  Job(std::string id, OperationPtr operation, const JobOptions& options, const JobContext* context,
      JobShape shape);

  ~Job();
  /// A timer to cancel when the job is gone.
  void SetDeadlineTimer(Timer::Id id, Timer* timer) {
    deadline_timer_ = id;
    timer_ = timer;
  }

  const std::string& id() const { return id_; }
  const std::string& identity() const { return identity_; }
  const Operation& operation() const { return *operation_; }
  int64_t block_bytes() const { return shape_.block_bytes; }
  /// Whether the operand's bytes come over streams: it is neither a resident array nor in a region.
  bool streamed(uint32_t operand) const {
    return std::holds_alternative<Streamed>(places().operands[operand]);
  }
  /// Whether any operand's do.
  bool takes_input() const { return streamed_ > 0; }
  /// Whether the results stay on the device, as arrays: then there is no output.
  bool stores() const {
    return std::holds_alternative<Stored>(places().result) ||
           std::holds_alternative<StoredBefore>(places().result);
  }
  /// Where the results are written, each at its Problem::result_offset(): then there is no output either.
  /// Null: nowhere.
  const RegionPart* result_region() const { return RegionOf(places().result); }
  /// Whether the results are told by NextOutput().
  bool hands_out() const { return places().handed_out(); }
  /// The id of a result's array; empty until stream 0 was told that nothing is left.
  std::string stored_id(size_t result = 0) const;
  const Places& places() const { return shape_.places; }

  // --- memory: at once, or, of a job that lands, when the first bytes are here -----------------------
  /// Has it from now on, and starts what needs no input. Once; dropped where the job has failed.
  void Begin(JobMemory memory);
  /// It has an order alone; before any bytes. `decide` gets the right to the memory, and calls Begin() or
  /// Fail(). The order is given back when the job fails.
  void AwaitLanding(Order order, Admission::Decision decide);
  /// Bytes of an operand are here (Intake::Take() says so, too), so that it is time for its memory; whether
  /// it has that. Until then nobody gets a block.
  bool Land();
  bool has_memory() const { return phase_.load() == Phase::kHasMemory; }
  /// Whether it has landed and waits for its memory: nobody but the server is late then.
  bool awaits_memory() const { return phase_.load() == Phase::kLanded; }

  /// How far the end of a chunk may lie beyond the lowest byte of any operand that was not sent; 0: any bytes
  /// may come at any time. Output of a windowed job must be taken while input is brought.
  int64_t window_bytes() const { return shape_.ring.window_bytes; }

  // --- input; used by Intake -------------------------------------------------------------------
  using Block = InputBlocks::Block;
  /// Registers that block `index` of `operand` begins to arrive. INVALID_ARGUMENT `RUN_RULE` when it did
  /// before.
  Status ClaimBlock(uint32_t operand, int64_t index);
  /// A place for a claimed block; nothing while every staging block is in use or the window has not reached
  /// it, or when the job has failed.
  std::optional<Block> TakeBlock(int64_t index);
  /// Where byte `offset` of `operand` goes, which lies in `block`, and how many of the `bytes` from there on
  /// fit, 1 or more.
  std::span<std::byte> PlaceIn(const Block& block, uint32_t operand, int64_t offset, int64_t bytes) const;
  /// The block holds all its bytes: copies it to its place and frees it. `staged`: how its last bytes got
  /// there; null where that is not to be recorded.
  void CommitBlock(uint32_t operand, int64_t index, Block block, const Span* staged);
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
  bool awaited() const { return help_.stands() && MayBeAwaited(); }
  /// Looks after the job's lane for some microseconds, others' work included. False once there is nothing to
  /// wait for any more, or it takes longer than anybody should be awake.
  bool Await();

  // --- streams ---------------------------------------------------------------------------------
  // A job is carried by stream 0, which opened it, and by those that joined. Any stream may bring any block
  // and take any run of output; each run goes to one of them.
  /// How many streams may carry the job, the first included.
  int max_streams() const { return shape_.streams; }
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
  /// Whether the stream waits for some, and so for no client that takes what came before.
  bool output_awaited(int stream) const;

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
  /// Operand bytes of streams that have their place, and result bytes that clients took, so far.
  uint64_t moved() const { return moved_.load(std::memory_order_relaxed); }
  void CountMoved(uint64_t bytes) { moved_.fetch_add(bytes, std::memory_order_relaxed); }
  /// Stage times so far and counts.
  Timing timing() const;

 private:
  /// Copies from and to regions that are under way at once: enough to hide the waits between them, and few
  /// enough for other jobs to get on the lanes.
  static constexpr int64_t kCopiesPerLane = 4;

  /// Of an operand that is copied from one.
  const RegionPart& RegionToCopy(uint32_t operand) const {
    return std::get<CopiedFrom>(places().operands[operand]).part;
  }
  InputBlocks MakeInput() const;
  std::optional<Window> MakeWindow() const;
  const Window* window() const { return window_ ? &*window_ : nullptr; }

  /// The lane for a stage's next piece of work, counted as used.
  int LaneFor(Stage stage) TILEWIRE_REQUIRES(mutex_);
  /// Whether copies in, copies out and kernels keep to lanes of their own.
  bool HasStageLanes() const { return !context_->host_memory && lanes_ > 2; }
  /// Copies from regions, and copies to one, that may be under way.
  int64_t MostCopies() const { return HasStageLanes() ? kCopiesPerLane : kCopiesPerLane * lanes_; }
  /// Where the bytes from `offset` on of an operand at `base` lie: `bytes` of them, or as many as are in one
  /// piece.
  std::span<std::byte> PieceAt(std::byte* base, int64_t offset, int64_t bytes) const;
  /// Where byte `offset` of the result area lies; a run of Output follows there in one piece.
  std::byte* ResultAt(int64_t offset) const;
  bool ResultInRing() const { return window_ && operation_->ranges_fill_result(); }
  /// What the work of a range is given: whole arrays, or the slots of that range.
  Buffers BuffersOf(int64_t range) const;

  // Suffix Locked: mutex_ is held. What must run without it goes to `later` and, for lanes, to submissions_.
  void CheckWindowLocked(Deferred* later) TILEWIRE_REQUIRES(mutex_);
  /// `bytes` of range `range` of a windowed job are needed no more; see Window::Leave.
  void LeaveLocked(int64_t range, int64_t bytes, Deferred* later) TILEWIRE_REQUIRES(mutex_);
  void CopyInLocked(uint32_t operand, int64_t index, Block block) TILEWIRE_REQUIRES(mutex_);
  /// Copies blocks of operands that lie in regions, as far as there is room.
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
  void StartCopyOutLocked(const Output::Copy& copy) TILEWIRE_REQUIRES(mutex_);
  void CopiedOutLocked(const Output::Copy& copy, Deferred* later) TILEWIRE_REQUIRES(mutex_);
  void WrittenLocked(const Output::Copy& copy, Deferred* later) TILEWIRE_REQUIRES(mutex_);
  void ReturnOutput(int block);
  void ReturnPiece(int64_t offset, int64_t bytes);
  void DeliverLocked(Deferred* later) TILEWIRE_REQUIRES(mutex_);
  OutputPiece PieceLocked(const Output::Piece& piece) TILEWIRE_REQUIRES(mutex_);
  /// Hands the result over to the store and tells stream 0.
  void StoreResult(const OnOutput& on_output);
  bool InputOverLocked() const TILEWIRE_REQUIRES(mutex_) { return !takes_input() || input_.ended(); }
  bool EverythingTakenLocked() const TILEWIRE_REQUIRES(mutex_);
  void FailLocked(const Status& status, Deferred* later) TILEWIRE_REQUIRES(mutex_);
  /// Records the span, whose times are the completion's; on failure fails the job. True when the job goes on.
  bool CompletedLocked(Span span, const Completion& completion, Deferred* later) TILEWIRE_REQUIRES(mutex_);
  uint64_t RangeBytes(int64_t range) const;  ///< that it reads, of all operands
  void ReportDeviceFailure(const Completion& completion);
  /// Gives lanes what was decided for them and does the rest of `later`.
  void RunAll(Deferred* later) TILEWIRE_EXCLUDES(mutex_);

  /// Small, and touching no region: what others can take away is left to lanes and workers.
  bool MayBeHelped() const { return context_->small && arriving_ == streamed_ && !result_region(); }
  /// Not where lanes compute, which takes as long as it takes.
  bool MayBeAwaited() const {
    return !context_->small && !context_->host_memory && arriving_ == 0 && way_out_ == OutputWay::kInPlace;
  }
  /// The one of the first kernel.
  Lane* HelpedLane() const { return context_->lanes[HasStageLanes() ? 1 : 0]; }
  /// A result in place is read, and one that is stored or in a region of device memory used, without a
  /// submission of this job: it is ready when the last completion came.
  bool ResultWaits() const { return way_out_ == OutputWay::kInPlace || way_out_ == OutputWay::kStay; }

  const std::string id_, identity_;
  const OperationPtr operation_;
  const JobContext* const context_;
  const bool overlap_;
  const uint32_t lanes_;  ///< of the context's, from the first
  enum class Phase : uint8_t { kOpen, kLanded, kHasMemory };
  JobMemory memory_;  ///< written once, before any block is taken or work is begun
  const JobShape shape_;
  const BlockGrid grid_;   ///< of every operand
  const size_t arriving_;  ///< operands that come in blocks: from regions, and
  const size_t streamed_;  ///< over streams
  const OutputWay way_out_;
  /// The job has one lane, which runs submissions in order: what depends on a submission is enqueued right
  /// behind it instead of when its completion was noticed. Spares a small request the waits in between.
  const bool ordered_;
  Timer* timer_ = nullptr;
  Timer::Id deadline_timer_ = 0;
  HelpOffer help_;
  std::atomic<uint64_t> bytes_copied_{0};  ///< by the CPU, either way
  std::atomic<uint64_t> moved_{0};
  std::atomic<Phase> phase_{Phase::kOpen};  ///< changed under mutex_

  Submissions submissions_;
  mutable Mutex mutex_;
  SpanLog spans_ TILEWIRE_GUARDED_BY(mutex_);
  Status status_ TILEWIRE_GUARDED_BY(mutex_);
  std::shared_ptr<Order> order_ TILEWIRE_GUARDED_BY(mutex_);  ///< until it has memory, or fails
  TimePoint landed_ TILEWIRE_GUARDED_BY(mutex_);
  uint32_t next_lane_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t lanes_used_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< bit set
  bool launched_ TILEWIRE_GUARDED_BY(mutex_) = false;
  /// The store was given the result; only it can still refuse it.
  bool storing_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::vector<std::string> stored_ids_ TILEWIRE_GUARDED_BY(mutex_);  ///< [result]
  // The parts.
  std::optional<Window> window_;  ///< of a windowed job; under mutex_, but for its PlaceOf
  Streams streams_ TILEWIRE_GUARDED_BY(mutex_);
  InputBlocks input_ TILEWIRE_GUARDED_BY(mutex_);
  RegionCopies region_copies_ TILEWIRE_GUARDED_BY(mutex_);
  Ranges ranges_ TILEWIRE_GUARDED_BY(mutex_);
  Output output_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire::engine
