#include "server/engine/job/job.h"

#include <algorithm>
#include <utility>

namespace tilewire::engine {
namespace {

uint32_t LanesOf(const JobContext& context, const JobOptions& options, bool overlap) {
  if (!overlap) return 1;
  const auto all = static_cast<uint32_t>(context.lanes.size());
  return options.lanes > 0 ? std::min(all, static_cast<uint32_t>(options.lanes)) : all;
}

std::vector<uint32_t> InRegions(const JobResources& resources) {
  std::vector<uint32_t> operands;
  for (uint32_t i = 0; i < resources.regions.size(); ++i)
    if (resources.regions[i] && !resources.there[i]) operands.push_back(i);
  return operands;
}

}  // namespace

Job::Job(std::string id, std::unique_ptr<Operation> operation, const JobOptions& options,
         const JobContext* context, JobResources resources)
    : id_(std::move(id)),
      identity_(options.identity),
      operation_(std::move(operation)),
      context_(context),
      overlap_(context->overlap && !options.sequential),
      lanes_(LanesOf(*context, options, overlap_)),
      resources_(std::move(resources)),
      in_regions_(InRegions(resources_)),
      arriving_(static_cast<size_t>(std::count(resources_.there.begin(), resources_.there.end(), false))),
      streamed_(arriving_ - in_regions_.size()),
      stores_(resources_.room || !resources_.room.existing().empty()),
      ordered_(overlap_ && context->lanes.size() == 1 && resources_.ring.slots == 0 &&
               (!ResultWaits() || operation_->has_finish())),
      spans_(options.arrived, options.trace),
      output_blocks_(result_region() ? static_cast<size_t>(MostCopies()) : resources_.output_blocks.size()) {
  const int64_t blocks = BlockCount();
  for (uint32_t i = 0; i < resources_.there.size(); ++i) claimed_.emplace_back(streamed(i) ? blocks : 0);
  blocks_left_ = blocks * static_cast<int64_t>(arriving_);
  ranges_left_ = operation_->range_count();
  for (size_t i = 0; i < resources_.input_blocks.size(); ++i) free_blocks_.push_back(static_cast<int>(i));
  if (operation_->ranges_fill_result()) range_done_.assign(ranges_left_, false);
  if (resources_.ring.slots > 0) window_.emplace(*operation_, resources_.ring, block_bytes(), arriving_);
  CountMissing();
  if (options.helped) AnnounceHelp();
}

Job::~Job() {
  WithdrawHelp();
  if (timer_) timer_->Cancel(deadline_timer_);
}

void Job::CountMissing() {
  missing_.resize(ranges_left_);
  for (int64_t i = 0; i < ranges_left_; ++i) {
    const ByteInterval bytes = operation_->range_bytes(i);
    const int64_t blocks = (bytes.end - 1) / block_bytes() - bytes.begin / block_bytes() + 1;
    missing_[i] = static_cast<uint32_t>(blocks * static_cast<int64_t>(arriving_));
  }
}

void Job::RunAll(Deferred* later) {
  std::span<Lane* const> awaited;
  if (later->awaits_kernels) awaited = KernelLanes();
  for (Lane* lane : awaited) lane->AnnounceHelp();
  submissions_.Flush();
  for (auto& call : later->calls) call();
  later->calls.clear();
  AwaitKernels(awaited);
}

// --- input ----------------------------------------------------------------------------------------

Status Job::ClaimBlock(uint32_t operand, int64_t index) {
  MutexLock lock(mutex_);
  if (!status_.ok()) return status_;
  if (claimed_[operand][index])
    return Status(Code::kInvalidArgument, "RUN_RULE",
                  "block " + std::to_string(index) + " of operand " + std::to_string(operand) +
                      " was sent before; every byte must arrive exactly once");
  claimed_[operand][index] = true;
  return {};
}

std::optional<Job::Block> Job::TakeBlock(int64_t index) {
  MutexLock lock(mutex_);
  if (!status_.ok() || !MayTakeLocked(index)) return std::nullopt;
  if (resources_.inputs_in_place) return Block{};
  const int staging = free_blocks_.back();
  free_blocks_.pop_back();
  return Block{staging};
}

std::span<std::byte> Job::PlaceIn(const Block& block, uint32_t operand, int64_t offset, int64_t bytes) const {
  const int64_t within = offset % block_bytes();
  bytes = std::min(bytes, block_bytes() - within);
  if (block.staging < 0) return PieceAt(resources_.buffers.operands[operand], offset, bytes);
  return {resources_.input_blocks[block.staging].data() + within, static_cast<size_t>(bytes)};
}

void Job::CommitBlock(uint32_t operand, int64_t index, Block block) {
  const int64_t bytes = BlockLength(operand_bytes(), index);
  Deferred later;
  {
    MutexLock lock(mutex_);
    if (!status_.ok()) {
      if (block.staging >= 0) free_blocks_.push_back(block.staging);
      return;
    }
    ++blocks_arrived_;
    bytes_arrived_ += bytes;
    if (window_) window_->Committed(index);
    if (block.staging < 0) {
      BlockArrivedLocked(index, &later);
    } else {
      CopyInLocked(operand, index, block);
      if (ordered_) BlockArrivedLocked(index, &later);
    }
  }
  context_->count(1, bytes, 0, 0);
  RunAll(&later);
}

void Job::ReturnBlock(Block block) {
  if (block.staging < 0) return;
  Deferred later;
  {
    MutexLock lock(mutex_);
    free_blocks_.push_back(block.staging);
    WakeBlockWaitersLocked(&later);
  }
  RunAll(&later);
}

void Job::WhenBlockFree(std::function<void()> function, int stream, int64_t index) {
  Deferred later;
  {
    MutexLock lock(mutex_);
    if (!status_.ok() || MayTakeLocked(index)) {
      later.calls.push_back(std::move(function));
    } else {
      block_waiters_.push_back({stream, index, std::move(function)});
      CheckWindowLocked(&later);
    }
  }
  RunAll(&later);
  WithdrawHelp();  // the caller may be about to wait for what nobody was woken for
}

// --- compute --------------------------------------------------------------------------------------

bool Job::CompletedLocked(Span span, const Completion& completion, Deferred* later) {
  if (!completion.status.ok()) {
    FailLocked(completion.status, later);
  } else if (status_.ok()) {
    span.begin = completion.begin;
    span.end = completion.end;
    spans_.Add(span);
  }
  return status_.ok();
}

void Job::ReportDeviceFailure(const Completion& completion) {
  if (!completion.status.ok() && !context_->device_health().ok()) context_->on_device_failure();
}

// --- life -----------------------------------------------------------------------------------------

bool Job::launched() const {
  MutexLock lock(mutex_);
  return launched_;
}

void Job::AddSpan(const Span& span) {
  MutexLock lock(mutex_);
  spans_.Add(span);
}

Timing Job::timing() const {
  Timing timing;
  MutexLock lock(mutex_);
  spans_.Fill(Clock::now(), &timing);
  timing.bytes_in = bytes_arrived_;
  timing.bytes_out = bytes_out_;
  timing.region_bytes_in = region_in_;
  timing.region_bytes_out = region_out_;
  timing.bytes_copied = bytes_copied_.load(std::memory_order_relaxed);
  timing.blocks = blocks_arrived_;
  if (!operation_->result_is_operand()) timing.ranges = operation_->range_count() - ranges_left_;
  timing.lanes = static_cast<uint32_t>(__builtin_popcountll(lanes_used_));
  timing.streams = static_cast<uint32_t>(streams_.size());
  timing.device = context_->device_id;
  const auto share = [&timing](Stage stage, uint64_t bytes, double rate) {
    if (timing.bottleneck == StageName(stage) && rate > 0 && timing.of(stage) > 0)
      timing.bottleneck_share = static_cast<double>(bytes) / (timing.of(stage) * 1e-6) / rate;
  };
  // Those rates are of the way between host and device; regions of device memory are on its far side.
  const bool crosses_in = in_regions_.empty() || !resources_.regions[in_regions_[0]].on_device();
  if (crosses_in) share(Stage::kH2D, timing.bytes_in + timing.region_bytes_in, context_->copy_rates.in);
  if (!result_region().on_device())
    share(Stage::kD2H, timing.bytes_out + timing.region_bytes_out, context_->copy_rates.out);
  return timing;
}

}  // namespace tilewire::engine
