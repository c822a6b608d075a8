// What differs in a job whose arrays lie in rings of slots; see window.h.
#include <algorithm>
#include <utility>

#include "server/engine/job/job.h"

namespace tilewire::engine {

std::span<std::byte> Job::PieceAt(std::byte* base, int64_t offset, int64_t bytes) const {
  if (!window_) return {base + offset, static_cast<size_t>(bytes)};
  const Window::Place place = window_->PlaceOf(offset);
  return {base + place.at, static_cast<size_t>(std::min(bytes, place.bytes))};
}

Buffers Job::BuffersOf(int64_t range) const {
  if (!window_) return memory_.buffers;
  const int64_t begin = operation_->range_bytes(range).begin, slot = window_->PlaceOf(begin).at;
  Buffers buffers = memory_.buffers;
  for (size_t i = 0; i < places().operands.size(); ++i)
    buffers.operands[i] += Arrives(places().operands[i]) ? slot : begin;  // what is there lies whole
  if (ResultInRing()) buffers.results[0] += slot;
  return buffers;
}

std::byte* Job::ResultAt(int64_t offset) const {
  return memory_.buffers.results[0] + (ResultInRing() ? window_->PlaceOf(offset).at : offset);
}

void Job::LeaveLocked(int64_t range, int64_t bytes, Deferred* later) {
  window_->Leave(range, bytes);
  input_.Wake(&later->calls);
  PumpRegionsLocked(later);
}

void Job::ReturnPiece(int64_t offset, int64_t bytes) {
  Deferred later;
  {
    MutexLock lock(mutex_);
    LeaveLocked(RangeAt(*operation_, offset), bytes, &later);
  }
  RunAll(&later);
}

/// Were one stream not waiting, or waiting for what the device or a reader will free, it might yet bring the
/// bytes that the others wait for. Regions always bring theirs.
void Job::CheckWindowLocked(Deferred* later) {
  if (!window_) return;
  if (region_copies_.any() && grid_.begin(region_copies_.lowest_block()) <= window_->lowest_missing()) return;
  const BlockWaiter* blamed = nullptr;
  for (int stream = 0; stream < streams_.count(); ++stream) {
    if (streams_.half_closed(stream)) continue;
    blamed = input_.WaiterOf(stream);
    if (!blamed || !window_->Beyond(blamed->index)) return;
  }
  if (!blamed) return;
  const std::string offset = std::to_string(grid_.begin(blamed->index));
  const std::string missing = std::to_string(window_->lowest_missing());
  FailLocked(
      Status({.code = Code::kFailedPrecondition,
              .reason = "OUT_OF_WINDOW",
              .message = "bytes at offset " + offset + " came while bytes at " + missing +
                         " are missing and no stream is left to bring them; this job has room for " +
                         std::to_string(window_->window_bytes()) +
                         " bytes of each operand at a time (Opened.window_bytes)",
              .field = "chunk.offset",
              .value = offset,
              .allowed = "at most " + std::to_string(window_->lowest_missing() + window_->window_bytes()) +
                         " before those"}),
      later);
}

}  // namespace tilewire::engine
