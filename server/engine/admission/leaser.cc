#include "server/engine/admission/leaser.h"

#include <algorithm>
#include <utility>

namespace tilewire::engine {
namespace {

/// `addresses`: operands in order, results in order, scratch.
void SetBuffers(const Operation& operation, const Places& places, const std::vector<std::byte*>& addresses,
                Buffers* buffers) {
  const auto& operands = places.operands;
  const auto results = addresses.begin() + static_cast<std::ptrdiff_t>(operands.size());
  std::copy(addresses.begin(), results, buffers->operands.begin());
  std::copy(results, addresses.end() - 1, buffers->results.begin());
  buffers->scratch = addresses.back();
  for (size_t i = 0; i < operands.size(); ++i)
    if (!Arrives(operands[i])) buffers->operands[i] = DataThere(operands[i]);
  if (operation.result_is_operand()) {
    buffers->results[0] = buffers->operands[0];
  } else if (const auto* written = std::get_if<WrittenIn>(&places.result)) {
    operation.PlaceResults(written->part.data(), buffers);
  }
}

/// Where memory of a job goes that is leased for that use.
void Put(MemoryPlan::Use use, Memory memory, JobMemory* to) {
  switch (use) {
    case MemoryPlan::Use::kArrays:
      to->arrays.push_back(std::move(memory));
      return;
    case MemoryPlan::Use::kStored:
      to->results.push_back(std::move(memory));
      return;
    case MemoryPlan::Use::kInputBlocks:
      to->input_blocks.push_back(std::move(memory));
      return;
    case MemoryPlan::Use::kOutputBlocks:
      to->output_blocks.push_back(std::move(memory));
      return;
  }
}

}  // namespace

Status Leaser::Lease(const Job& job, const MemoryPlan& plan, JobMemory* memory) const {
  std::vector<std::byte*> begins;  // of pieces
  for (const MemoryPlan::Piece& piece : plan.pieces) {
    for (int64_t i = 0; i < piece.count; ++i) {
      TILEWIRE_ASSIGN_OR_RETURN(Memory leased, piece.pinned ? device_->AllocatePinned(piece.bytes)
                                                            : device_->AllocateDevice(piece.bytes));
      if (i == 0) begins.push_back(leased.data());
      Put(piece.use, std::move(leased), memory);
    }
  }
  std::vector<std::byte*> addresses;
  for (const MemoryPlan::Place& place : plan.places)
    addresses.push_back(place.piece < 0 ? nullptr : begins[static_cast<size_t>(place.piece)] + place.offset);
  SetBuffers(job.operation(), job.places(), addresses, &memory->buffers);
  return {};
}

}  // namespace tilewire::engine
