#include "client/cpp/stripe.h"

#include "client/cpp/convert.h"

namespace tilewire::client {

std::optional<ChunkPlan> Stripe::NextTurn() {
  const std::lock_guard lock(mutex_);
  const auto turn = schedule_->NextTurn();
  if (turn) taken_.store(true);
  return turn;
}

void Stripe::Sent(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  progress_.sent += bytes;
  Report();
}

uint64_t Stripe::received() const {
  const std::lock_guard lock(mutex_);
  return progress_.received;
}

Status Stripe::Deliver(uint64_t offset, const wire::Pieces& pieces) {
  const uint64_t bytes = wire::TotalBytes(pieces);
  if (offset > progress_.receive_total || bytes > progress_.receive_total - offset)
    return BadReply("output bytes " + std::to_string(offset) + " + " + std::to_string(bytes) + " of " +
                    std::to_string(progress_.receive_total));
  std::unique_lock lock(mutex_);
  if (options_.concurrent_sink) lock.unlock();
  for (const wire::Bytes piece : pieces) {
    TILEWIRE_RETURN_IF_ERROR(sink_(offset, piece));
    offset += piece.size();
  }
  if (options_.concurrent_sink) lock.lock();
  progress_.received += bytes;
  Report();
  return {};
}

}  // namespace tilewire::client
