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

std::vector<uint32_t> CopiedFromRegions(const Places& places) {
  std::vector<uint32_t> operands;
  for (uint32_t i = 0; i < places.operands.size(); ++i)
    if (std::holds_alternative<CopiedFrom>(places.operands[i])) operands.push_back(i);
  return operands;
}

OutputWay WayOut(const ResultPlace& place) {
  if (const auto* out = std::get_if<HandedOut>(&place))
    return out->from == HandedOut::From::kBlocks ? OutputWay::kBlocks : OutputWay::kInPlace;
  return std::holds_alternative<CopiedTo>(place) ? OutputWay::kRegion : OutputWay::kStay;
}

}  // namespace

Job::Job(std::string id, OperationPtr operation, const JobOptions& options, const JobContext* context,
         JobShape shape)
    : id_(std::move(id)),
      identity_(options.identity),
      operation_(std::move(operation)),
      context_(context),
      overlap_(context->overlap && !options.sequential),
      lanes_(LanesOf(*context, options, overlap_)),
      shape_(std::move(shape)),
      grid_{operation_->operands()[0].bytes(), shape_.block_bytes},
      arriving_(places().arriving()),
      streamed_(places().streamed()),
      way_out_(WayOut(places().result)),
      ordered_(overlap_ && context->lanes.size() == 1 && shape_.ring.slots == 0 &&
               (!ResultWaits() || operation_->has_finish())),
      spans_(options.arrived, options.trace),
      window_(MakeWindow()),
      input_(MakeInput()),
      region_copies_(CopiedFromRegions(places()), grid_.count(), MostCopies()),
      // A windowed job has no room for copies first, then kernels, which are for study.
      ranges_(*operation_, grid_, arriving_, !overlap_ && !window_),
      output_(*operation_, way_out_, block_bytes(),
              way_out_ == OutputWay::kRegion ? static_cast<size_t>(MostCopies()) : shape_.output_blocks,
              ResultInRing() ? window() : nullptr) {
  if (options.helped && (MayBeHelped() || MayBeAwaited())) help_.Announce(HelpedLane());
}

Job::~Job() {
  help_.Withdraw();
  if (timer_) timer_->Cancel(deadline_timer_);
}

std::optional<Window> Job::MakeWindow() const {
  if (shape_.ring.slots == 0) return std::nullopt;
  return std::optional<Window>(std::in_place, *operation_, shape_.ring, block_bytes(), arriving_);
}

InputBlocks Job::MakeInput() const {
  std::optional<size_t> staging;
  if (!shape_.inputs_in_place) staging = shape_.input_blocks;
  InputBlocks input(places().operands.size(), grid_.count(), staging, window());
  for (uint32_t i = 0; i < places().operands.size(); ++i)
    if (streamed(i)) input.Stream(i);
  input.Close();  // until there is memory
  return input;
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
  if (input_.Claim(operand, index)) return {};
  return Status(Code::kInvalidArgument, "RUN_RULE",
                "block " + std::to_string(index) + " of operand " + std::to_string(operand) +
                    " was sent before; every byte must arrive exactly once");
}

std::optional<Job::Block> Job::TakeBlock(int64_t index) {
  MutexLock lock(mutex_);
  return status_.ok() ? input_.Take(index) : std::nullopt;
}

std::span<std::byte> Job::PlaceIn(const Block& block, uint32_t operand, int64_t offset, int64_t bytes) const {
  const int64_t within = offset % block_bytes();
  bytes = std::min(bytes, block_bytes() - within);
  if (block.staging < 0) return PieceAt(memory_.buffers.operands[operand], offset, bytes);
  return {memory_.input_blocks[block.staging].data() + within, static_cast<size_t>(bytes)};
}

void Job::CommitBlock(uint32_t operand, int64_t index, Block block, const Span* staged) {
  const int64_t bytes = grid_.length(index);
  Deferred later;
  {
    MutexLock lock(mutex_);
    if (staged) spans_.Add(*staged);
    if (!status_.ok()) return input_.Free(block);
    input_.Arrived(bytes);
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
    input_.Free(block);
    input_.Wake(&later.calls);
  }
  RunAll(&later);
}

void Job::WhenBlockFree(std::function<void()> function, int stream, int64_t index) {
  Deferred later;
  {
    MutexLock lock(mutex_);
    if (!status_.ok() || input_.MayTake(index)) {
      later.calls.push_back(std::move(function));
    } else {
      input_.Wait({stream, index, std::move(function)});
      CheckWindowLocked(&later);
    }
  }
  RunAll(&later);
  help_.Withdraw();  // the caller may be about to wait for what nobody was woken for
}

// --- help -----------------------------------------------------------------------------------------

void Job::Help() {
  if (MayBeHelped()) HelpOffer::Help(HelpedLane());
  help_.Withdraw();
}

bool Job::Await() {
  if (!help_.stands()) return false;
  bool over = !help_.Glance();
  if (!over) {
    MutexLock lock(mutex_);
    over = !status_.ok() || output_.all_ready();
  }
  if (over) help_.Withdraw();
  return !over;
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
  timing.bytes_in = input_.stream_bytes();
  timing.bytes_out = static_cast<uint64_t>(output_.handed_out_bytes());
  timing.region_bytes_in = input_.region_bytes();
  timing.region_bytes_out = static_cast<uint64_t>(output_.written_bytes());
  timing.bytes_copied = bytes_copied_.load(std::memory_order_relaxed);
  timing.blocks = input_.blocks_arrived();
  if (!operation_->result_is_operand()) timing.ranges = ranges_.done();
  timing.lanes = static_cast<uint32_t>(__builtin_popcountll(lanes_used_));
  timing.streams = static_cast<uint32_t>(streams_.count());
  timing.device = context_->device_id;
  const auto share = [&timing](Stage stage, uint64_t bytes, double rate) {
    if (timing.bottleneck == StageName(stage) && rate > 0 && timing.of(stage) > 0)
      timing.bottleneck_share = static_cast<double>(bytes) / (timing.of(stage) * 1e-6) / rate;
  };
  // Those rates are of the way between host and device; regions of device memory are on its far side.
  const bool crosses_in = !region_copies_.any() || !RegionToCopy(region_copies_.operands()[0]).on_device();
  if (crosses_in) share(Stage::kH2D, timing.bytes_in + timing.region_bytes_in, context_->copy_rates.in);
  if (!result_region() || !result_region()->on_device())
    share(Stage::kD2H, timing.bytes_out + timing.region_bytes_out, context_->copy_rates.out);
  return timing;
}

}  // namespace tilewire::engine
