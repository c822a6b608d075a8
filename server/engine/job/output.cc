#include "server/engine/job/output.h"

#include <algorithm>
#include <utility>

namespace tilewire::engine {
namespace {

/// Where the result ends that byte `offset` of the result area lies in.
int64_t ResultEnd(const Operation& operation, int64_t offset) {
  const size_t result = operation.result_at(offset);
  return operation.result_offset(result) + operation.results()[result].bytes();
}

/// Where output goes on that came up to `end`: there, or at the next result.
int64_t Behind(const Operation& operation, int64_t end) {
  const size_t result = operation.result_at(end - 1);
  const bool more = result + 1 < operation.results().size();
  return more && end == ResultEnd(operation, end - 1) ? operation.result_offset(result + 1) : end;
}

}  // namespace

Output::Output(const Operation& operation, OutputWay way, int64_t block_bytes, size_t copies,
               const Window* ring)
    : operation_(operation),
      way_(way),
      block_bytes_(block_bytes),
      total_(operation.result_bytes()),
      payload_(operation.payload_bytes()),
      ring_(ring),
      blocks_(copies) {}

bool Output::over() const {
  if (way_ == OutputWay::kStay) return all_ready();
  return way_ == OutputWay::kRegion ? written_ == payload_ : next_piece_ == total_;
}

int64_t Output::RunEnd(int64_t offset) const {
  if (ring_) return offset + std::min(ring_->PlaceOf(offset).bytes, block_bytes_);
  return std::min((offset / block_bytes_ + 1) * block_bytes_, total_);
}

std::optional<Output::Copy> Output::NextCopy() {
  const bool to_region = way_ == OutputWay::kRegion;
  if (!to_region && way_ != OutputWay::kBlocks) return std::nullopt;
  if (!blocks_.any_free() || next_copy_ >= total_) return std::nullopt;
  const int64_t begin = next_copy_;
  int64_t end = RunEnd(begin);
  if (to_region) end = std::min(end, ResultEnd(operation_, begin));
  if (end > ready_) return std::nullopt;
  next_copy_ = to_region ? Behind(operation_, end) : end;
  return Copy{begin, end - begin, blocks_.Take()};
}

void Output::Written(const Copy& copy) {
  written_ += copy.bytes;
  blocks_.Free(copy.block);
}

std::optional<Output::Piece> Output::NextPiece() {
  const bool in_place = way_ == OutputWay::kInPlace;
  if ((!in_place && way_ != OutputWay::kBlocks) || next_piece_ >= ready_) return std::nullopt;
  // Also in place cut at block ends, so that sending starts before everything is ready.
  const int64_t begin = next_piece_, end = std::min({RunEnd(begin), ResultEnd(operation_, begin), ready_}),
                next = Behind(operation_, end);
  const size_t result = operation_.result_at(begin);
  Piece piece{.result = static_cast<uint32_t>(result),
              .offset = begin - operation_.result_offset(result),
              .begin = begin,
              .bytes = end - begin,
              .in = {.block = -1, .at = 0}};
  if (!in_place) {
    const auto lent = blocks_.Lend(begin, next);
    if (!lent) return std::nullopt;
    piece.in = *lent;
  }
  next_piece_ = next;
  handed_out_ += piece.bytes;
  return piece;
}

std::optional<Output::Answer> Output::NextAnswer(const Streams& streams, bool input_over) {
  const auto ended = [&](const OutputWaiter& waiter) {
    if (!waiter.take) return streams.half_closed(waiter.stream);
    return input_over && over() && (waiter.stream > 0 || streams.joined_done());
  };
  for (auto waiter = waiters_.begin(); waiter != waiters_.end(); ++waiter) {
    std::optional<Piece> piece;
    if (!ended(*waiter)) {
      if (waiter->take) piece = NextPiece();
      if (!piece) continue;
    }
    Answer answer{std::move(*waiter), piece};
    waiters_.erase(waiter);
    return answer;
  }
  return std::nullopt;
}

}  // namespace tilewire::engine
