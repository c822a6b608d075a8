#include "client/cpp/stripe.h"

#include <iterator>

#include "client/cpp/convert.h"

namespace tilewire::client {

std::optional<ChunkPlan> Stripe::NextTurn() {
  const MutexLock lock(mutex_);
  const auto turn = schedule_->NextTurn();
  if (turn) moved_.store(true);
  return turn;
}

void Stripe::Sent(uint64_t bytes) {
  const MutexLock lock(mutex_);
  progress_.sent += bytes;
  Report();
}

uint64_t Stripe::received() const {
  const MutexLock lock(mutex_);
  return progress_.received;
}

bool Stripe::CoverLocked(uint64_t begin, uint64_t end) {
  const auto after = covered_.lower_bound(begin);
  if (after != covered_.end() && after->first < end) return false;
  const auto before = after == covered_.begin() ? covered_.end() : std::prev(after);
  if (before != covered_.end() && before->second > begin) return false;
  // Neighbours grow together, so that there is about one entry a stream.
  if (after != covered_.end() && after->first == end) {
    end = after->second;
    covered_.erase(after);
  }
  if (before != covered_.end() && before->second == begin) {
    before->second = end;
  } else {
    covered_.emplace(begin, end);
  }
  return true;
}

Status Stripe::BeginLocked(uint64_t offset, uint64_t bytes) {
  if (!CoverLocked(offset, offset + bytes))
    return BadReply("output bytes at " + std::to_string(offset) + " came twice");
  if (bytes > 0) moved_.store(true);
  return {};
}

Status Stripe::Pass(uint64_t offset, const wire::Pieces& pieces) const {
  for (const wire::Bytes piece : pieces) {
    TILEWIRE_RETURN_IF_ERROR(sink_(offset, piece));
    offset += piece.size();
  }
  return {};
}

void Stripe::ReceivedLocked(uint64_t bytes) {
  progress_.received += bytes;
  if (progress_.received == receive_total_) complete_.store(true);
  Report();
}

Status Stripe::Deliver(uint64_t offset, const wire::Pieces& pieces) {
  const uint64_t bytes = wire::TotalBytes(pieces);
  if (offset > receive_total_ || bytes > receive_total_ - offset)
    return BadReply("output bytes " + std::to_string(offset) + " + " + std::to_string(bytes) + " of " +
                    std::to_string(receive_total_));
  RelockableMutexLock lock(mutex_);
  TILEWIRE_RETURN_IF_ERROR(BeginLocked(offset, bytes));
  if (options_.concurrent_sink) {
    lock.Unlock();
    TILEWIRE_RETURN_IF_ERROR(Pass(offset, pieces));
    lock.Lock();
  } else {
    TILEWIRE_RETURN_IF_ERROR(Pass(offset, pieces));
  }
  ReceivedLocked(bytes);
  return {};
}

}  // namespace tilewire::client
