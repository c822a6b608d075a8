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
  if (!window_) return resources_.buffers;
  const int64_t begin = operation_->range_bytes(range).begin, slot = window_->PlaceOf(begin).at;
  Buffers buffers = resources_.buffers;
  for (size_t i = 0; i < resources_.there.size(); ++i)
    buffers.operands[i] += resources_.there[i] ? begin : slot;  // what is there lies whole
  if (ResultInRing()) buffers.results[0] += slot;
  return buffers;
}

std::byte* Job::ResultAt(int64_t offset) const {
  return resources_.buffers.results[0] + (ResultInRing() ? window_->PlaceOf(offset).at : offset);
}

int64_t Job::OutputEnd(int64_t offset) const {
  const int64_t total = operation_->result_bytes();
  if (ResultInRing()) return offset + std::min(window_->PlaceOf(offset).bytes, block_bytes());
  return std::min((offset / block_bytes() + 1) * block_bytes(), total);
}

void Job::WakeBlockWaitersLocked(Deferred* later) {
  const auto woken = std::stable_partition(
      block_waiters_.begin(), block_waiters_.end(),
      [this](const BlockWaiter& waiter) TILEWIRE_REQUIRES(mutex_) { return !MayTakeLocked(waiter.index); });
  for (auto waiter = woken; waiter != block_waiters_.end(); ++waiter)
    later->calls.push_back(std::move(waiter->function));
  block_waiters_.erase(woken, block_waiters_.end());
}

void Job::LeaveLocked(int64_t range, int64_t bytes, Deferred* later) {
  window_->Leave(range, bytes);
  WakeBlockWaitersLocked(later);
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
  const auto operands = static_cast<int64_t>(in_regions_.size());
  if (operands > 0 && region_begun_ / operands * block_bytes() <= window_->lowest_missing()) return;
  const BlockWaiter* blamed = nullptr;
  for (size_t stream = 0; stream < streams_.size(); ++stream) {
    if (streams_[stream].half_closed) continue;
    const auto waiter = std::find_if(
        block_waiters_.begin(), block_waiters_.end(),
        [stream](const BlockWaiter& candidate) { return candidate.stream == static_cast<int>(stream); });
    if (waiter == block_waiters_.end() || !window_->Beyond(waiter->index)) return;
    blamed = &*waiter;
  }
  if (!blamed) return;
  const std::string offset = std::to_string(blamed->index * block_bytes());
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
