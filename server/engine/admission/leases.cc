// What a job needs, and how it gets it.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "server/base/limits.h"
#include "server/engine/device/memory_pool.h"
#include "server/engine/engine.h"

namespace tilewire::engine {
namespace {

constexpr int64_t kAlignment = 256;

int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}
int64_t Rounded(int64_t bytes) {
  return static_cast<int64_t>(MemoryPool::RoundUp(static_cast<size_t>(bytes)));
}

int64_t RoundedOr0(int64_t bytes) {
  return bytes > 0 ? Rounded(bytes) : 0;
}

/// Bytes on the device of the operands in order, then of the result; 0 for what lies there already.
std::vector<int64_t> ArraySizes(const Operation& operation, const JobLayout& layout) {
  const bool windowed = layout.ring.slots > 0;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < layout.resident.size(); ++i)
    sizes.push_back(layout.resident[i] ? 0
                    : windowed         ? layout.ring.bytes()
                                       : operation.operands()[i].bytes());
  const bool result_too = windowed && operation.ranges_fill_result();
  sizes.push_back(operation.result_is_operand() || layout.result_there ? 0
                  : result_too                                         ? layout.ring.bytes()
                                                                       : operation.result_bytes());
  return sizes;
}

/// `addresses`: operands in order, result, scratch.
void SetBuffers(const Operation& operation, const std::vector<std::byte*>& addresses,
                JobResources* resources) {
  Buffers& buffers = resources->buffers;
  buffers.scratch = addresses.back();
  std::copy(addresses.begin(), addresses.end() - 2, buffers.operands.begin());
  for (size_t i = 0; i < resources->there.size(); ++i)
    if (resources->there[i])
      buffers.operands[i] =
          resources->residents[i] ? resources->residents[i]->data() : resources->regions[i].data();
  buffers.result = operation.result_is_operand() ? buffers.operands[0]
                   : resources->result_there     ? resources->result_region.data()
                                                 : addresses[addresses.size() - 2];
}

int64_t StagingBlockBytes(int64_t array_bytes, int64_t block_bytes) {
  // An array of less than a block needs no whole one.
  return Rounded(std::min(block_bytes, std::max(array_bytes, int64_t{4096})));
}

int64_t StagingBlocks(int64_t array_bytes, const JobLayout& layout) {
  return std::min<int64_t>(layout.streams + layout.spare_blocks, (array_bytes - 1) / layout.block_bytes + 1);
}

int64_t StagingBytes(const Operation& operation, const JobLayout& layout) {
  const auto staging = [&](int64_t array) {
    return StagingBlocks(array, layout) * StagingBlockBytes(array, layout.block_bytes);
  };
  int64_t bytes = layout.output_staged() ? staging(operation.result_bytes()) : 0;
  for (size_t i = 0; i < layout.streamed.size(); ++i)
    if (layout.streamed[i] && !layout.inputs_in_place) bytes += staging(operation.operands()[i].bytes());
  return bytes;
}

bool IsSmallJob(const Operation& operation) {
  int64_t bytes = operation.result_bytes();
  for (const ArraySpec& operand : operation.operands()) bytes += operand.bytes();
  return bytes <= kSmallJobBytes;
}

/// Whether the bytes of every range begin where an array could: in a resident array they lie where they lie.
bool RangesAligned(const Operation& operation) {
  for (int64_t i = 0; i < operation.range_count(); ++i)
    if (operation.range_bytes(i).begin % kAlignment != 0) return false;
  return true;
}

Status NotWindowed(const std::string& why) {
  return Status(Code::kFailedPrecondition, "", why);
}

}  // namespace

/// All but streams and ring. A stored result needs a piece of its own and may be needed for long, so that is
/// no matter of the small jobs' slice.
JobLayout Engine::LayoutOf(const Operation& operation, const JobOptions& options) const {
  JobLayout layout{.small = !options.store && IsSmallJob(operation),
                   .store = options.store.has_value(),
                   .to_region = static_cast<bool>(options.result_region),
                   .result_there = options.result_region.on_device() && !operation.result_is_operand(),
                   .block_bytes = BlockBytes(operation, options),
                   .spare_blocks = options_.spare_blocks};
  std::set<const ResidentArray*> held;
  bool copied = layout.to_region;
  for (size_t i = 0; i < options.residents.size(); ++i) {
    const ArrayUse& resident = options.residents[i];
    layout.resident.push_back(options.there(operation, i));
    layout.streamed.push_back(!resident && !options.regions[i]);
    copied = copied || (options.regions[i] && !layout.resident.back());
    if (resident && held.insert(resident.get()).second) layout.held_bytes += resident->device_bytes();
  }
  // Small jobs whose kernels reach pinned memory need neither staging nor copies. But for regions of host
  // memory: these are copied by the device, since what the CPU touches may be gone.
  const bool reach = facts().kernels_reach_pinned && !facts().host_memory;
  layout.inputs_in_place = facts().host_memory || (reach && layout.small && !copied);
  // Who waits for nothing but a kernel is not to wait for a copy of a few bytes behind it either: kernels
  // write over the bus what replies copy anyway, so that no client that is slow to take its reply holds that
  // memory.
  const bool few = layout.all_resident() && operation.result_bytes() <= kMaxCopiedOutputBytes;
  layout.result_pinned = reach && !layout.to_region && !layout.store && !operation.result_is_operand() &&
                         (layout.inputs_in_place || few);
  layout.output_in_place = layout.result_pinned || (facts().host_memory && !layout.to_region);
  return layout;
}

/// As many streams as wanted and allowed, but no more than leave three quarters of the staging budget to
/// others.
int Engine::GrantStreams(const Operation& operation, JobLayout layout, int wanted) const {
  layout.streams = std::clamp(wanted, 1, options_.max_streams);
  while (layout.streams > 1 && StagingBytes(operation, layout) > options_.pinned_bytes / 4) --layout.streams;
  return layout.streams;
}

Demand Engine::DemandOf(const Operation& operation, const JobLayout& layout) const {
  Demand demand{.small = layout.small, .held_bytes = layout.held_bytes};
  const std::vector<int64_t> sizes = ArraySizes(operation, layout);
  int64_t arrays = 0;
  for (const int64_t size : sizes) arrays += demand.small ? Aligned(size) : RoundedOr0(size);
  const int64_t scratch = operation.scratch_bytes();
  demand.pinned_bytes = StagingBytes(operation, layout);
  if (!demand.small) {
    const int64_t written_over = layout.result_pinned ? RoundedOr0(sizes.back()) : 0;
    demand.pinned_bytes += written_over;
    demand.device_bytes = arrays - written_over + RoundedOr0(scratch);
  } else if (layout.inputs_in_place && !facts().host_memory) {
    demand.pinned_bytes += RoundedOr0(arrays);
    demand.device_bytes = RoundedOr0(scratch);
  } else {
    demand.device_bytes = RoundedOr0(arrays + Aligned(scratch));
  }
  return demand;
}

/// The job's arrays whole where they fit, else in rings; where that is impossible too, `why` says so.
JobLayout Engine::Arrange(std::unique_ptr<Operation>* operation, const JobOptions& options,
                          std::string* why) const {
  JobLayout whole = LayoutOf(**operation, options);
  whole.streams = GrantStreams(**operation, whole, options.streams);
  if (!options.may_window ||
      DemandOf(**operation, whole).device_bytes <= admission_.bulk_device_bytes() - whole.held_bytes)
    return whole;
  auto windowed = (*operation)->Windowed();
  auto layout = windowed ? WindowedLayout(**windowed, options, whole) : Fail(windowed.error());
  if (!layout) {
    *why = layout.error().message();
    return whole;
  }
  *operation = *std::move(windowed);
  return *layout;
}

/// A ring that lets all streams and lanes have blocks of their own, but no more than a quarter of the budget
/// and no less than a few ranges; smaller still where tile sums and result leave less.
Result<JobLayout> Engine::WindowedLayout(const Operation& operation, const JobOptions& options,
                                         JobLayout layout) const {
  constexpr int64_t kFewRanges = 4, kFineBlock = 256;
  const int64_t slot = SlotBytes(operation);
  const int64_t budget = admission_.bulk_device_bytes() - layout.held_bytes;
  if (layout.all_resident()) return Fail(NotWindowed("its operands are stored arrays"));
  if (layout.store && operation.ranges_fill_result())
    return Fail(NotWindowed("the result is to be stored, so it has to fit"));
  if (operation.ranges_fill_result()) layout.result_there = false;  // copied out of its ring
  const bool some = std::find(layout.resident.begin(), layout.resident.end(), true) != layout.resident.end();
  if (some && !RangesAligned(operation))
    return Fail(NotWindowed("parts of its stored operand do not begin at multiples of 256 bytes"));
  layout.block_bytes = std::min(layout.block_bytes, slot);
  // A client may want to cut its messages at blocks and at elements.
  if (layout.block_bytes > kFineBlock) layout.block_bytes -= layout.block_bytes % kFineBlock;
  const int64_t most = layout.block_bytes * kMaxWindowedBlocks;
  if (operation.operands()[0].bytes() > most)
    return Fail(NotWindowed("an operand has more than " + std::to_string(most) + " bytes"));
  layout.streams = GrantStreams(operation, layout, options.streams);

  const int64_t blocks = layout.streams + options_.lanes + 2;
  const int64_t arrays = std::count(layout.resident.begin(), layout.resident.end(), false) +
                         static_cast<int64_t>(operation.ranges_fill_result());
  Ring& ring = layout.ring;
  ring.slot_bytes = slot;
  ring.slots = std::min(blocks * layout.block_bytes / slot + 2, budget / 4 / (arrays * slot));
  ring.slots = std::max(ring.slots, kFewRanges);
  while (ring.slots > 1 && DemandOf(operation, layout).device_bytes > budget) --ring.slots;
  for (;; ++ring.slots) {
    if (DemandOf(operation, layout).device_bytes > budget)
      return Fail(NotWindowed("result, tile sums and a window of " + std::to_string(ring.slots) +
                              " parts of " + std::to_string(slot) + " bytes of each array do not fit"));
    ring.window_bytes = WindowBytes(operation, ring.slots, layout.block_bytes);
    if (ring.window_bytes >= layout.block_bytes) break;
  }
  layout.streams =
      static_cast<int>(std::min<int64_t>(layout.streams, ring.window_bytes / layout.block_bytes));
  return layout;
}

/// Arrays of a bulk job: a piece each, on the device but for a result that kernels write over the bus.
/// Scratch never lies there: what kernels read again is not to cross it.
Status Engine::LeaseApart(const Operation& operation, const JobLayout& layout, JobResources* resources) {
  std::vector<int64_t> sizes = ArraySizes(operation, layout);
  const size_t result = operation.result_is_operand() ? 0 : sizes.size() - 1;
  sizes.push_back(operation.scratch_bytes());
  std::vector<std::byte*> addresses;
  for (const int64_t bytes : sizes) {
    addresses.push_back(nullptr);
    if (bytes == 0) continue;
    const bool is_result = addresses.size() - 1 == result;
    TILEWIRE_ASSIGN_OR_RETURN(Memory memory, is_result && layout.result_pinned
                                                 ? device_->AllocatePinned(bytes)
                                                 : device_->AllocateDevice(bytes));
    addresses.back() = memory.data();
    if (layout.store && is_result) {
      resources->result = std::move(memory);
    } else {
      resources->arrays.push_back(std::move(memory));
    }
  }
  SetBuffers(operation, addresses, resources);
  return {};
}

/// A small job's arrays: one piece for all, so one lease; scratch, which only kernels touch, on the device.
Status Engine::LeasePacked(const Operation& operation, const JobLayout& layout, JobResources* resources) {
  const bool pinned = layout.inputs_in_place && !facts().host_memory;
  const std::vector<int64_t> sizes = ArraySizes(operation, layout);
  int64_t packed = pinned ? 0 : Aligned(operation.scratch_bytes());
  for (const int64_t size : sizes) packed += Aligned(size);
  std::byte* next = nullptr;
  if (packed > 0) {
    TILEWIRE_ASSIGN_OR_RETURN(Memory memory,
                              pinned ? device_->AllocatePinned(packed) : device_->AllocateDevice(packed));
    next = memory.data();
    resources->arrays.push_back(std::move(memory));
  }
  std::vector<std::byte*> addresses;
  addresses.reserve(sizes.size() + 1);
  for (const int64_t size : sizes) addresses.push_back(std::exchange(next, next + Aligned(size)));
  addresses.push_back(operation.scratch_bytes() > 0 ? next : nullptr);
  if (pinned && operation.scratch_bytes() > 0) {
    TILEWIRE_ASSIGN_OR_RETURN(Memory scratch, device_->AllocateDevice(operation.scratch_bytes()));
    addresses.back() = scratch.data();
    resources->arrays.push_back(std::move(scratch));
  }
  SetBuffers(operation, addresses, resources);
  return {};
}

Status Engine::LeaseStaging(const Operation& operation, const JobLayout& layout, JobResources* resources) {
  const auto stage = [&](int64_t bytes, std::vector<Memory>* blocks) -> Status {
    const int64_t block_bytes = StagingBlockBytes(bytes, layout.block_bytes);
    for (int64_t i = 0; i < StagingBlocks(bytes, layout); ++i) {
      TILEWIRE_ASSIGN_OR_RETURN(Memory memory, device_->AllocatePinned(block_bytes));
      blocks->push_back(std::move(memory));
    }
    return {};
  };
  for (size_t i = 0; i < layout.streamed.size(); ++i)
    if (layout.streamed[i] && !layout.inputs_in_place)
      TILEWIRE_RETURN_IF_ERROR(stage(operation.operands()[i].bytes(), &resources->input_blocks));
  if (!layout.output_staged()) return {};
  return stage(operation.result_bytes(), &resources->output_blocks);
}

/// What `resources` lacks: all but the ticket, what is resident, and the room for what is to be.
Status Engine::Lease(const Operation& operation, const JobLayout& layout, JobResources* resources) {
  resources->streams = layout.streams;
  resources->block_bytes = layout.block_bytes;
  resources->inputs_in_place = layout.inputs_in_place;
  resources->output_in_place = layout.output_in_place;
  resources->ring = layout.ring;
  resources->there = layout.resident;
  resources->result_there = layout.result_there;
  TILEWIRE_RETURN_IF_ERROR(layout.small ? LeasePacked(operation, layout, resources)
                                        : LeaseApart(operation, layout, resources));
  return LeaseStaging(operation, layout, resources);
}

}  // namespace tilewire::engine
