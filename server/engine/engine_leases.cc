// What a job needs, and how it gets it.
#include <algorithm>
#include <utility>

#include "server/base/limits.h"
#include "server/engine/engine.h"
#include "server/engine/memory_pool.h"

namespace tilewire::engine {
namespace {

// Staging blocks of one operand or of the result beside the one that each stream fills: one being copied, one
// to spare. Every stream may hold one that is half full, so with fewer they could wait for each other.
constexpr int64_t kSpareBlocks = 2;
constexpr int64_t kAlignment = 256;

int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}
int64_t Rounded(int64_t bytes) {
  return static_cast<int64_t>(MemoryPool::RoundUp(static_cast<size_t>(bytes)));
}

/// Bytes on the device of the operands in order, then of the result.
std::vector<int64_t> ArraySizes(const Operation& operation, const JobLayout& layout) {
  const bool windowed = layout.ring.slots > 0;
  std::vector<int64_t> sizes;
  for (const ArraySpec& operand : operation.operands())
    sizes.push_back(windowed ? layout.ring.bytes() : operand.bytes());
  const bool result_too = windowed && operation.ranges_fill_result();
  sizes.push_back(result_too ? layout.ring.bytes() : operation.result().bytes());
  return sizes;
}

/// `addresses`: operands in order, result, scratch.
void SetBuffers(const std::vector<std::byte*>& addresses, Buffers* buffers) {
  buffers->scratch = addresses.back();
  buffers->result = addresses[addresses.size() - 2];
  buffers->operands.assign(addresses.begin(), addresses.end() - 2);
}

int64_t StagingBlockBytes(int64_t array_bytes, int64_t block_bytes) {
  // An array of less than a block needs no whole one.
  return Rounded(std::min(block_bytes, std::max(array_bytes, int64_t{4096})));
}

int64_t StagingBlocks(int64_t array_bytes, const JobLayout& layout) {
  return std::min(layout.streams + kSpareBlocks, (array_bytes - 1) / layout.block_bytes + 1);
}

int64_t StagingBytes(const Operation& operation, const JobLayout& layout) {
  const auto staging = [&](const ArraySpec& spec) {
    return StagingBlocks(spec.bytes(), layout) * StagingBlockBytes(spec.bytes(), layout.block_bytes);
  };
  int64_t bytes = staging(operation.result());
  for (const ArraySpec& operand : operation.operands()) bytes += staging(operand);
  return bytes;
}

}  // namespace

bool Engine::IsSmallJob(const Operation& operation) {
  int64_t bytes = operation.result().bytes();
  for (const ArraySpec& operand : operation.operands()) bytes += operand.bytes();
  return bytes <= kSmallJobBytes;
}

int64_t Engine::BlockBytes(const Operation& operation, const JobOptions& options) const {
  if (options.block_bytes > 0) return options.block_bytes;
  if (!options_.fit_blocks) return options_.block_bytes;
  return BlockFor(operation.operands()[0].bytes(), options_.block_bytes, copy_rates_);
}

/// As many streams as wanted and allowed, but no more than leave three quarters of the staging budget to
/// others.
int Engine::GrantStreams(const Operation& operation, int64_t block_bytes, int wanted) const {
  JobLayout layout{.streams = std::clamp(wanted, 1, options_.max_streams), .block_bytes = block_bytes};
  if (InPlace(operation)) return layout.streams;
  while (layout.streams > 1 && StagingBytes(operation, layout) > options_.pinned_bytes / 4) --layout.streams;
  return layout.streams;
}

/// Small jobs whose kernels reach pinned memory need neither staging nor copies.
bool Engine::InPlace(const Operation& operation) const {
  return facts().host_memory || (facts().kernels_reach_pinned && IsSmallJob(operation));
}

Demand Engine::DemandOf(const Operation& operation, const JobLayout& layout) const {
  Demand demand{.small = IsSmallJob(operation)};
  int64_t arrays = 0;
  for (const int64_t size : ArraySizes(operation, layout))
    arrays += demand.small ? Aligned(size) : size > 0 ? Rounded(size) : 0;
  const int64_t scratch = operation.scratch_bytes();
  if (!InPlace(operation)) demand.pinned_bytes = StagingBytes(operation, layout);
  if (!demand.small) {
    demand.device_bytes = arrays + (scratch > 0 ? Rounded(scratch) : 0);
  } else if (InPlace(operation) && !facts().host_memory) {
    demand.pinned_bytes = Rounded(arrays);
    demand.device_bytes = scratch > 0 ? Rounded(scratch) : 0;
  } else {
    demand.device_bytes = Rounded(arrays + Aligned(scratch));
  }
  return demand;
}

/// The job's arrays whole where they fit, else in rings; where that is impossible too, `why` says so.
JobLayout Engine::Arrange(std::unique_ptr<Operation>* operation, const JobOptions& options,
                          std::string* why) const {
  const int64_t block_bytes = BlockBytes(**operation, options);
  const JobLayout whole{.streams = GrantStreams(**operation, block_bytes, options.streams),
                        .block_bytes = block_bytes};
  if (!options.may_window || DemandOf(**operation, whole).device_bytes <= admission_.bulk_device_bytes())
    return whole;
  auto windowed = (*operation)->Windowed();
  auto layout = windowed ? WindowedLayout(**windowed, options) : Fail(windowed.error());
  if (!layout) {
    *why = layout.error().message();
    return whole;
  }
  *operation = *std::move(windowed);
  return *layout;
}

/// A ring that lets all streams and lanes have blocks of their own, but no more than a quarter of the budget
/// and no less than a few ranges; smaller still where tile sums and result leave less.
Result<JobLayout> Engine::WindowedLayout(const Operation& operation, const JobOptions& options) const {
  constexpr int64_t kFewRanges = 4, kFineBlock = 256;
  const int64_t slot = SlotBytes(operation), budget = admission_.bulk_device_bytes();
  JobLayout layout{.block_bytes = std::min(BlockBytes(operation, options), slot)};
  // A client may want to cut its messages at blocks and at elements.
  if (layout.block_bytes > kFineBlock) layout.block_bytes -= layout.block_bytes % kFineBlock;
  const int64_t most = layout.block_bytes * kMaxWindowedBlocks;
  if (operation.operands()[0].bytes() > most)
    return Fail(
        Status(Code::kFailedPrecondition, "", "an operand has more than " + std::to_string(most) + " bytes"));
  layout.streams = GrantStreams(operation, layout.block_bytes, options.streams);

  const int64_t blocks = layout.streams + options_.lanes + 2;
  const int64_t arrays = static_cast<int64_t>(operation.operands().size()) + operation.ranges_fill_result();
  Ring& ring = layout.ring;
  ring.slot_bytes = slot;
  ring.slots = std::min(blocks * layout.block_bytes / slot + 2, budget / 4 / (arrays * slot));
  ring.slots = std::max(ring.slots, kFewRanges);
  while (ring.slots > 1 && DemandOf(operation, layout).device_bytes > budget) --ring.slots;
  for (;; ++ring.slots) {
    if (DemandOf(operation, layout).device_bytes > budget)
      return Fail(Status(Code::kFailedPrecondition, "",
                         "result, tile sums and a window of " + std::to_string(ring.slots) + " parts of " +
                             std::to_string(slot) + " bytes of each array do not fit"));
    ring.window_bytes = WindowBytes(operation, ring.slots, layout.block_bytes);
    if (ring.window_bytes >= layout.block_bytes) break;
  }
  layout.streams =
      static_cast<int>(std::min<int64_t>(layout.streams, ring.window_bytes / layout.block_bytes));
  return layout;
}

/// Device arrays of a bulk job: a piece each.
Status Engine::LeaseApart(const Operation& operation, const JobLayout& layout, JobResources* resources) {
  std::vector<std::byte*> addresses;
  const auto lease = [&](int64_t bytes) -> Status {
    addresses.push_back(nullptr);
    if (bytes == 0) return {};
    TILEWIRE_ASSIGN_OR_RETURN(Memory memory, device_->AllocateDevice(bytes));
    addresses.back() = memory.data();
    resources->arrays.push_back(std::move(memory));
    return {};
  };
  for (const int64_t size : ArraySizes(operation, layout)) TILEWIRE_RETURN_IF_ERROR(lease(size));
  TILEWIRE_RETURN_IF_ERROR(lease(operation.scratch_bytes()));
  SetBuffers(addresses, &resources->buffers);
  return {};
}

/// A small job's arrays: one piece for all, so one lease; scratch, which only kernels touch, on the device.
Status Engine::LeasePacked(const Operation& operation, const JobLayout& layout, JobResources* resources) {
  const bool pinned = resources->in_place && !facts().host_memory;
  const std::vector<int64_t> sizes = ArraySizes(operation, layout);
  int64_t packed = pinned ? 0 : Aligned(operation.scratch_bytes());
  for (const int64_t size : sizes) packed += Aligned(size);
  TILEWIRE_ASSIGN_OR_RETURN(Memory memory,
                            pinned ? device_->AllocatePinned(packed) : device_->AllocateDevice(packed));
  std::vector<std::byte*> addresses;
  std::byte* next = memory.data();
  for (const int64_t size : sizes) addresses.push_back(std::exchange(next, next + Aligned(size)));
  addresses.push_back(operation.scratch_bytes() > 0 ? next : nullptr);
  resources->arrays.push_back(std::move(memory));
  if (pinned && operation.scratch_bytes() > 0) {
    TILEWIRE_ASSIGN_OR_RETURN(Memory scratch, device_->AllocateDevice(operation.scratch_bytes()));
    addresses.back() = scratch.data();
    resources->arrays.push_back(std::move(scratch));
  }
  SetBuffers(addresses, &resources->buffers);
  return {};
}

Result<JobResources> Engine::Lease(const Operation& operation, const JobLayout& layout, Ticket ticket) {
  JobResources resources{.streams = layout.streams,
                         .block_bytes = layout.block_bytes,
                         .in_place = InPlace(operation),
                         .ring = layout.ring};
  resources.ticket = std::move(ticket);
  TILEWIRE_RETURN_IF_ERROR(IsSmallJob(operation) ? LeasePacked(operation, layout, &resources)
                                                 : LeaseApart(operation, layout, &resources));
  if (resources.in_place) return resources;

  const auto stage = [&](int64_t bytes, std::vector<Memory>* blocks) -> Status {
    const int64_t block_bytes = StagingBlockBytes(bytes, layout.block_bytes);
    for (int64_t i = 0; i < StagingBlocks(bytes, layout); ++i) {
      TILEWIRE_ASSIGN_OR_RETURN(Memory memory, device_->AllocatePinned(block_bytes));
      blocks->push_back(std::move(memory));
    }
    return {};
  };
  for (const ArraySpec& operand : operation.operands())
    TILEWIRE_RETURN_IF_ERROR(stage(operand.bytes(), &resources.input_blocks));
  TILEWIRE_RETURN_IF_ERROR(stage(operation.result().bytes(), &resources.output_blocks));
  return resources;
}

}  // namespace tilewire::engine
