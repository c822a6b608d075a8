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

using Piece = MemoryPlan::Piece;
using Place = MemoryPlan::Place;
using Use = MemoryPlan::Use;

/// Bytes of an operand; 0 where it lies somewhere already.
int64_t OperandBytes(const Operation& operation, const JobLayout& layout, size_t operand) {
  if (!Arrives(layout.places.operands[operand])) return 0;
  return layout.ring.slots > 0 ? layout.ring.bytes() : operation.operands()[operand].bytes();
}

/// Of the area that results lie in, one after the other; likewise.
int64_t ResultBytes(const Operation& operation, const JobLayout& layout) {
  if (operation.result_is_operand() || std::holds_alternative<WrittenIn>(layout.places.result)) return 0;
  const bool in_ring = layout.ring.slots > 0 && operation.ranges_fill_result();
  return in_ring ? layout.ring.bytes() : operation.result_bytes();
}

/// Places for results in an area that begins at `area`.
void PlaceResults(const Operation& operation, Place area, MemoryPlan* plan) {
  for (size_t i = 0; i < operation.results().size(); ++i)
    plan->places.push_back(area.piece < 0 ? area
                                          : Place{area.piece, area.offset + operation.result_offset(i)});
}

/// A piece for `piece.bytes`, if any, and the place where it begins.
Place AddPiece(Piece piece, MemoryPlan* plan) {
  if (piece.bytes == 0) return {};
  plan->pieces.push_back(piece);
  return {.piece = static_cast<int>(plan->pieces.size()) - 1};
}

/// Arrays of a bulk job: a piece each, on the device but for results that kernels write over the bus. Those
/// that stay are given back one by one, so they are pieces of their own. Scratch never lies there: what
/// kernels read again is not to cross it.
void AddApart(const Operation& operation, const JobLayout& layout, MemoryPlan* plan) {
  const bool passed = operation.result_is_operand();
  const bool store = std::holds_alternative<Stored>(layout.places.result);
  for (size_t i = 0; i < layout.places.operands.size(); ++i)
    plan->places.push_back(AddPiece(
        {.use = store && passed ? Use::kStored : Use::kArrays, .bytes = OperandBytes(operation, layout, i)},
        plan));
  if (store && !passed) {
    for (const ArraySpec& result : operation.results())
      plan->places.push_back(AddPiece({.use = Use::kStored, .bytes = result.bytes()}, plan));
  } else {
    const Piece area{.pinned = layout.places.handed_out_from(HandedOut::From::kPinned),
                     .bytes = ResultBytes(operation, layout)};
    PlaceResults(operation, AddPiece(area, plan), plan);
  }
  plan->places.push_back(AddPiece({.bytes = operation.scratch_bytes()}, plan));
}

/// A small job's arrays: one piece for all, so one lease; scratch, which only kernels touch, where these run.
void AddPacked(const Operation& operation, const JobLayout& layout, MemoryPlan* plan) {
  int64_t packed = 0;
  const auto pack = [&packed](int64_t bytes) {
    const Place place = bytes > 0 ? Place{.piece = 0, .offset = packed} : Place{};
    packed += Aligned(bytes);
    return place;
  };
  for (size_t i = 0; i < layout.places.operands.size(); ++i)
    plan->places.push_back(pack(OperandBytes(operation, layout, i)));
  PlaceResults(operation, pack(ResultBytes(operation, layout)), plan);
  const int64_t scratch = operation.scratch_bytes();
  const bool apart = layout.packed_pinned && !layout.on_host;
  const Place packed_scratch = apart ? Place{} : pack(scratch);
  if (packed > 0) plan->pieces.push_back({.pinned = layout.packed_pinned, .bytes = packed});
  plan->places.push_back(apart ? AddPiece({.bytes = scratch}, plan) : packed_scratch);
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
  for (size_t i = 0; i < layout.places.operands.size(); ++i)
    if (std::holds_alternative<Streamed>(layout.places.operands[i]) && !layout.inputs_in_place)
      pieces.push_back(Staging(operation.operands()[i].bytes(), layout, MemoryPlan::Use::kInputBlocks));
  if (layout.places.handed_out_from(HandedOut::From::kBlocks))
    pieces.push_back(Staging(operation.result_bytes(), layout, MemoryPlan::Use::kOutputBlocks));
  return pieces;
}

MemoryPlan PlanMemory(const Operation& operation, const JobLayout& layout) {
  MemoryPlan plan{.small = layout.small, .held_bytes = layout.held_bytes, .pieces = {}, .places = {}};
  (layout.small ? AddPacked : AddApart)(operation, layout, &plan);
  for (const MemoryPlan::Piece& piece : StagingPieces(operation, layout)) plan.pieces.push_back(piece);
  return plan;
}

JobShape JobPlan::TakeShape() {
  JobShape shape{.streams = layout.streams,
                 .block_bytes = layout.block_bytes,
                 .inputs_in_place = layout.inputs_in_place,
                 .ring = layout.ring,
                 .places = std::move(layout.places)};
  for (const Piece& piece : memory.pieces) {
    if (piece.use == Use::kInputBlocks) shape.input_blocks += static_cast<size_t>(piece.count);
    if (piece.use == Use::kOutputBlocks) shape.output_blocks += static_cast<size_t>(piece.count);
  }
  return shape;
}

Demand MemoryPlan::demand() const {
  Demand demand{.small = small, .held_bytes = held_bytes};
  for (const Piece& piece : pieces)
    (piece.pinned ? demand.pinned_bytes : demand.device_bytes) +=
        piece.count * static_cast<int64_t>(MemoryPool::RoundUp(static_cast<size_t>(piece.bytes)));
  return demand;
}

}  // namespace tilewire::engine
