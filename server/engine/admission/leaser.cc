#include "server/engine/admission/leaser.h"

#include <algorithm>
#include <utility>

namespace tilewire::engine {
namespace {

/// `addresses`: operands in order, results in order, scratch.
void SetBuffers(const Operation& operation, const std::vector<std::byte*>& addresses,
                JobResources* resources) {
  Buffers& buffers = resources->buffers;
  const auto& operands = resources->places.operands;
  const auto results = addresses.begin() + static_cast<std::ptrdiff_t>(operands.size());
  std::copy(addresses.begin(), results, buffers.operands.begin());
  std::copy(results, addresses.end() - 1, buffers.results.begin());
  buffers.scratch = addresses.back();
  for (size_t i = 0; i < operands.size(); ++i)
    if (!Arrives(operands[i])) buffers.operands[i] = DataThere(operands[i]);
  if (operation.result_is_operand()) {
    buffers.results[0] = buffers.operands[0];
  } else if (const auto* written = std::get_if<WrittenIn>(&resources->places.result)) {
    operation.PlaceResults(written->part.data(), &buffers);
  }
}

/// Where memory of a job goes that is leased for that use.
void Put(MemoryPlan::Use use, Memory memory, JobResources* resources) {
  switch (use) {
    case MemoryPlan::Use::kArrays:
      resources->arrays.push_back(std::move(memory));
      return;
    case MemoryPlan::Use::kStored:
      resources->results.push_back(std::move(memory));
      return;
    case MemoryPlan::Use::kInputBlocks:
      resources->input_blocks.push_back(std::move(memory));
      return;
    case MemoryPlan::Use::kOutputBlocks:
      resources->output_blocks.push_back(std::move(memory));
      return;
  }
}

}  // namespace

Status Leaser::Lease(const Operation& operation, JobPlan plan, JobResources* resources) const {
  JobLayout& layout = plan.layout;
  resources->streams = layout.streams;
  resources->block_bytes = layout.block_bytes;
  resources->inputs_in_place = layout.inputs_in_place;
  resources->ring = layout.ring;
  resources->places = std::move(layout.places);
  std::vector<std::byte*> begins;  // of pieces
  for (const MemoryPlan::Piece& piece : plan.memory.pieces) {
    for (int64_t i = 0; i < piece.count; ++i) {
      TILEWIRE_ASSIGN_OR_RETURN(Memory memory, piece.pinned ? device_->AllocatePinned(piece.bytes)
                                                            : device_->AllocateDevice(piece.bytes));
      if (i == 0) begins.push_back(memory.data());
      Put(piece.use, std::move(memory), resources);
    }
  }
  std::vector<std::byte*> addresses;
  for (const MemoryPlan::Place& place : plan.memory.places)
    addresses.push_back(place.piece < 0 ? nullptr : begins[static_cast<size_t>(place.piece)] + place.offset);
  SetBuffers(operation, addresses, resources);
  return {};
}

}  // namespace tilewire::engine
