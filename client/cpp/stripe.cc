#include "client/cpp/stripe.h"

#include <iterator>

#include "client/cpp/convert.h"

namespace tilewire::client {

Stripe::Stripe(const ResultSink& sink, const CallOptions& options, uint64_t send_total,
               const std::vector<uint64_t>& results)
    : sink_(sink), options_(options), progress_{.send_total = send_total} {
  for (const uint64_t bytes : results) ends_.push_back(receive_total() + bytes);
  progress_.receive_total = receive_total();
  complete_ = receive_total() == 0;
}

std::optional<ChunkPlan> Stripe::NextTurn() {
  const MutexLock lock(mutex_);
  const auto turn = schedule_->NextTurn();
  if (turn && moved_.load() == Moved::kNothing) moved_.store(Moved::kOperands);
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

Status Stripe::BeginLocked(size_t result, uint64_t offset, uint64_t bytes) {
  const uint64_t begin = BeginOf(result) + offset;
  if (!CoverLocked(begin, begin + bytes))
    return BadReply("output bytes at " + std::to_string(offset) + " came twice");
  if (bytes > 0) moved_.store(Moved::kResults);
  return {};
}

Status Stripe::Pass(size_t result, uint64_t offset, const wire::Pieces& pieces) const {
  for (const wire::Bytes piece : pieces) {
    TILEWIRE_RETURN_IF_ERROR(sink_(result, offset, piece));
    offset += piece.size();
  }
  return {};
}

void Stripe::ReceivedLocked(uint64_t bytes) {
  progress_.received += bytes;
  if (progress_.received == receive_total()) complete_.store(true);
  Report();
}

Status Stripe::Deliver(size_t result, uint64_t offset, const wire::Pieces& pieces) {
  if (result >= ends_.size()) return BadReply("a chunk of result " + std::to_string(result));
  const uint64_t bytes = wire::TotalBytes(pieces), all = ends_[result] - BeginOf(result);
  if (offset > all || bytes > all - offset)
    return BadReply("output bytes " + std::to_string(offset) + " + " + std::to_string(bytes) + " of " +
                    std::to_string(all));
  RelockableMutexLock lock(mutex_);
  TILEWIRE_RETURN_IF_ERROR(BeginLocked(result, offset, bytes));
  if (options_.concurrent_sink) {
    lock.Unlock();
    TILEWIRE_RETURN_IF_ERROR(Pass(result, offset, pieces));
    lock.Lock();
  } else {
    TILEWIRE_RETURN_IF_ERROR(Pass(result, offset, pieces));
  }
  ReceivedLocked(bytes);
  return {};
}

}  // namespace tilewire::client
