#include "server/engine/admission/leaser.h"

#include <algorithm>
#include <utility>

namespace tilewire::engine {
namespace {

/// `addresses`: operands in order, results in order, scratch.
void SetBuffers(const Operation& operation, const std::vector<std::byte*>& addresses,
                JobResources* resources) {
  Buffers& buffers = resources->buffers;
  const auto results = addresses.begin() + static_cast<std::ptrdiff_t>(resources->there.size());
  std::copy(addresses.begin(), results, buffers.operands.begin());
  std::copy(results, addresses.end() - 1, buffers.results.begin());
  buffers.scratch = addresses.back();
  for (size_t i = 0; i < resources->there.size(); ++i)
    if (resources->there[i])
      buffers.operands[i] =
          resources->residents[i] ? resources->residents[i]->data() : resources->regions[i].data();
  if (operation.result_is_operand()) {
    buffers.results[0] = buffers.operands[0];
  } else if (resources->result_there) {
    operation.PlaceResults(resources->result_region.data(), &buffers);
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

Status Leaser::Lease(const Operation& operation, const JobPlan& plan, JobResources* resources) const {
  const JobLayout& layout = plan.layout;
  resources->streams = layout.streams;
  resources->block_bytes = layout.block_bytes;
  resources->inputs_in_place = layout.inputs_in_place;
  resources->output_in_place = layout.output_in_place;
  resources->ring = layout.ring;
  resources->there = layout.resident;
  resources->result_there = layout.result_there;
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
