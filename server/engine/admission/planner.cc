#include "server/engine/admission/planner.h"

#include <algorithm>
#include <set>
#include <utility>

#include "server/base/limits.h"

namespace tilewire::engine {
namespace {

constexpr int64_t kRangeAlignment = 256;

int64_t OperandBytes(const Operation& operation) {
  int64_t bytes = 0;
  for (const ArraySpec& operand : operation.operands()) bytes += operand.bytes();
  return bytes;
}

bool IsSmallJob(const Operation& operation) {
  return operation.result_bytes() + OperandBytes(operation) <= kSmallJobBytes;
}

/// Whether it is one piece of work on memory that the host can reach.
bool IsOneOnHost(const Operation& operation, const JobLayout& layout) {
  return layout.packed_pinned && layout.places.handed_out_from(HandedOut::From::kPinned) &&
         layout.places.streamed() == operation.operands().size() && operation.range_count() == 1 &&
         !operation.has_finish();
}

/// Whether the bytes of every range begin where an array could: in a resident array they lie where they lie.
bool RangesAligned(const Operation& operation) {
  for (int64_t i = 0; i < operation.range_count(); ++i)
    if (operation.range_bytes(i).begin % kRangeAlignment != 0) return false;
  return true;
}

int64_t DeviceBytes(const Operation& operation, const JobLayout& layout) {
  return PlanMemory(operation, layout).demand().device_bytes;
}

Status NotWindowed(const std::string& why) {
  return Status(Code::kFailedPrecondition, "", why);
}

}  // namespace

/// All but streams and ring. A stored result needs a piece of its own and may be needed for long, so that is
/// no matter of the small jobs' slice.
JobLayout Planner::LayoutOf(const Operation& operation, const JobOptions& options, Places places) const {
  JobLayout layout{.small = !std::holds_alternative<Stored>(places.result) && IsSmallJob(operation),
                   .places = std::move(places),
                   .spare_blocks = limits_.spare_blocks};
  layout.block_bytes = BlockBytes(operation, layout.places, options.block_bytes, limits_.block, copy_rates_);
  std::set<const ResidentArray*> held;
  bool copied = RegionOf(layout.places.result) != nullptr;
  for (const OperandPlace& place : layout.places.operands) {
    copied = copied || std::holds_alternative<CopiedFrom>(place);
    if (const auto* resident = std::get_if<Resident>(&place);
        resident && held.insert(resident->array.get()).second)
      layout.held_bytes += resident->array->device_bytes();
  }
  // Small jobs whose kernels reach pinned memory need neither staging nor copies. But for regions of host
  // memory: these are copied by the device, since what the CPU touches may be gone.
  const bool reach = limits_.kernels_reach_pinned && !limits_.host_memory;
  layout.inputs_in_place = limits_.host_memory || (reach && layout.small && !copied);
  layout.packed_pinned = layout.inputs_in_place && !limits_.host_memory;
  auto* const out = std::get_if<HandedOut>(&layout.places.result);
  if (!out) return layout;
  // Who waits for nothing but a kernel is not to wait for a copy of a few bytes behind it either: kernels
  // write over the bus what replies copy anyway, so that no client that is slow to take its reply holds that
  // memory.
  const bool few = layout.places.all_there() && operation.result_bytes() <= kMaxCopiedOutputBytes;
  if (reach && !operation.result_is_operand() && (layout.inputs_in_place || few))
    out->from = HandedOut::From::kPinned;
  else if (limits_.host_memory)
    out->from = HandedOut::From::kInPlace;
  // Who says how the device is to go about it means the device.
  const bool told = options.lanes > 0 || options.block_bytes > 0 || options.sequential;
  layout.on_host = !told && OperandBytes(operation) <= limits_.host_bytes && IsOneOnHost(operation, layout);
  return layout;
}

/// As many streams as wanted and allowed, but no more than leave three quarters of the staging budget to
/// others.
void Planner::GrantStreams(const Operation& operation, int wanted, JobLayout* layout) const {
  const auto staging = [&] {
    return MemoryPlan{.pieces = StagingPieces(operation, *layout)}.demand().pinned_bytes;
  };
  layout->streams = std::clamp(wanted, 1, limits_.max_streams);
  while (layout->streams > 1 && staging() > limits_.pinned_bytes / 4) --layout->streams;
}

JobPlan Planner::Plan(OperationPtr* operation, const JobOptions& options, Places places,
                      std::string* why) const {
  JobPlan whole{.layout = LayoutOf(**operation, options, std::move(places))};
  GrantStreams(**operation, options.streams, &whole.layout);
  whole.memory = PlanMemory(**operation, whole.layout);
  if (!options.may_window ||
      whole.memory.demand().device_bytes <= limits_.bulk_device_bytes - whole.layout.held_bytes)
    return whole;
  auto windowed = (*operation)->Windowed();
  auto plan = windowed ? Windowed(**windowed, options, whole.layout) : Fail(windowed.error());
  if (!plan) {
    *why = plan.error().message();
    return whole;
  }
  *operation = *std::move(windowed);
  return *std::move(plan);
}

/// A ring that lets all streams and lanes have blocks of their own, but no more than a quarter of the budget
/// and no less than a few ranges; smaller still where tile sums and result leave less.
Result<JobPlan> Planner::Windowed(const Operation& operation, const JobOptions& options,
                                  JobLayout layout) const {
  constexpr int64_t kFewRanges = 4, kFineBlock = 256;
  const int64_t slot = SlotBytes(operation);
  const int64_t budget = limits_.bulk_device_bytes - layout.held_bytes;
  Places& places = layout.places;
  const auto arriving = static_cast<int64_t>(places.arriving());
  const bool fill = operation.ranges_fill_result();
  if (arriving == 0) return Fail(NotWindowed("its operands are stored arrays"));
  if (fill && std::holds_alternative<Stored>(places.result))
    return Fail(NotWindowed("the result is to be stored, so it has to fit"));
  if (auto* written = std::get_if<WrittenIn>(&places.result); written && fill)  // comes out of its ring
    places.result = CopiedTo{RegionPart(std::move(written->part))};
  if (places.operands.size() > places.arriving() && !RangesAligned(operation))
    return Fail(NotWindowed("parts of its stored operand do not begin at multiples of 256 bytes"));
  layout.block_bytes = std::min(layout.block_bytes, slot);
  // A client may want to cut its messages at blocks and at elements.
  if (layout.block_bytes > kFineBlock) layout.block_bytes -= layout.block_bytes % kFineBlock;
  const int64_t most = layout.block_bytes * kMaxWindowedBlocks;
  if (operation.operands()[0].bytes() > most)
    return Fail(NotWindowed("an operand has more than " + std::to_string(most) + " bytes"));
  GrantStreams(operation, options.streams, &layout);

  const int64_t blocks = layout.streams + limits_.lanes + 2;
  const int64_t arrays = arriving + static_cast<int64_t>(fill);
  Ring& ring = layout.ring;
  ring.slot_bytes = slot;
  ring.slots = std::min(blocks * layout.block_bytes / slot + 2, budget / 4 / (arrays * slot));
  ring.slots = std::max(ring.slots, kFewRanges);
  while (ring.slots > 1 && DeviceBytes(operation, layout) > budget) --ring.slots;
  for (;; ++ring.slots) {
    if (DeviceBytes(operation, layout) > budget)
      return Fail(NotWindowed("result, tile sums and a window of " + std::to_string(ring.slots) +
                              " parts of " + std::to_string(slot) + " bytes of each array do not fit"));
    ring.window_bytes = WindowBytes(operation, ring.slots, layout.block_bytes);
    if (ring.window_bytes >= layout.block_bytes) break;
  }
  layout.streams =
      static_cast<int>(std::min<int64_t>(layout.streams, ring.window_bytes / layout.block_bytes));
  MemoryPlan memory = PlanMemory(operation, layout);
  return JobPlan{std::move(layout), std::move(memory)};
}

}  // namespace tilewire::engine
