// Which pieces of memory a job is made of.
#include <algorithm>
#include <utility>

#include "server/engine/admission/planner.h"
#include "server/engine/device/memory_pool.h"

namespace tilewire::engine {
namespace {

constexpr int64_t kAlignment = 256;

int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Bytes of the operands in order, then of the result; 0 for what lies somewhere already.
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

void AddPiece(MemoryPlan::Piece piece, MemoryPlan* plan) {
  plan->places.push_back({.piece = static_cast<int>(plan->pieces.size())});
  plan->pieces.push_back(piece);
}

/// Arrays of a bulk job: a piece each, on the device but for a result that kernels write over the bus.
/// Scratch never lies there: what kernels read again is not to cross it.
void AddApart(const Operation& operation, const JobLayout& layout, MemoryPlan* plan) {
  std::vector<int64_t> sizes = ArraySizes(operation, layout);
  const size_t result = operation.result_is_operand() ? 0 : sizes.size() - 1;
  sizes.push_back(operation.scratch_bytes());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) {
      plan->places.emplace_back();
    } else {
      AddPiece({.use = layout.store && i == result ? MemoryPlan::Use::kStored : MemoryPlan::Use::kArrays,
                .pinned = i == result && layout.result_pinned,
                .bytes = sizes[i]},
               plan);
    }
  }
}

/// A small job's arrays: one piece for all, so one lease; scratch, which only kernels touch, on the device.
void AddPacked(const Operation& operation, const JobLayout& layout, MemoryPlan* plan) {
  int64_t packed = 0;
  const auto place = [&](int64_t bytes) {
    plan->places.push_back(bytes > 0 ? MemoryPlan::Place{.piece = 0, .offset = packed} : MemoryPlan::Place{});
    packed += Aligned(bytes);
  };
  for (const int64_t bytes : ArraySizes(operation, layout)) place(bytes);
  const int64_t scratch = operation.scratch_bytes();
  const bool scratch_apart = layout.packed_pinned && scratch > 0;
  if (!scratch_apart) place(scratch);
  if (packed > 0) plan->pieces.push_back({.pinned = layout.packed_pinned, .bytes = packed});
  if (scratch_apart) AddPiece({.bytes = scratch}, plan);
}

/// Blocks through which the bytes of an array go.
MemoryPlan::Piece Staging(int64_t array_bytes, const JobLayout& layout, MemoryPlan::Use use) {
  // An array of less than a block needs no whole one.
  return {.use = use,
          .pinned = true,
          .bytes = static_cast<int64_t>(MemoryPool::RoundUp(
              static_cast<size_t>(std::min(layout.block_bytes, std::max(array_bytes, int64_t{4096}))))),
          .count = std::min<int64_t>(layout.streams + layout.spare_blocks,
                                     (array_bytes - 1) / layout.block_bytes + 1)};
}

}  // namespace

std::vector<MemoryPlan::Piece> StagingPieces(const Operation& operation, const JobLayout& layout) {
  std::vector<MemoryPlan::Piece> pieces;
  for (size_t i = 0; i < layout.streamed.size(); ++i)
    if (layout.streamed[i] && !layout.inputs_in_place)
      pieces.push_back(Staging(operation.operands()[i].bytes(), layout, MemoryPlan::Use::kInputBlocks));
  if (layout.output_staged())
    pieces.push_back(Staging(operation.result_bytes(), layout, MemoryPlan::Use::kOutputBlocks));
  return pieces;
}

MemoryPlan PlanMemory(const Operation& operation, const JobLayout& layout) {
  MemoryPlan plan{.small = layout.small, .held_bytes = layout.held_bytes, .pieces = {}, .places = {}};
  (layout.small ? AddPacked : AddApart)(operation, layout, &plan);
  for (const MemoryPlan::Piece& piece : StagingPieces(operation, layout)) plan.pieces.push_back(piece);
  return plan;
}

Demand MemoryPlan::demand() const {
  Demand demand{.small = small, .held_bytes = held_bytes};
  for (const Piece& piece : pieces)
    (piece.pinned ? demand.pinned_bytes : demand.device_bytes) +=
        piece.count * static_cast<int64_t>(MemoryPool::RoundUp(static_cast<size_t>(piece.bytes)));
  return demand;
}

}  // namespace tilewire::engine
