#include "server/rpc/calls/feed.h"

#include <algorithm>
#include <cstring>

namespace tilewire::rpc {

QueueTask<Status> Feed(Call& call, engine::Job& job, engine::Intake& intake, uint32_t operand,
                       uint64_t offset, const wire::Pieces& pieces) {
  if (Status status = intake.BeginChunk(operand, offset, wire::TotalBytes(pieces)); !status.ok())
    co_return status;
  auto piece = pieces.begin();
  size_t used = 0;  // of *piece
  Span span{.stage = Stage::kStage, .track = static_cast<uint32_t>(call.stream_number()), .operand = operand};
  while (intake.chunk_left() > 0) {
    const auto place = intake.NextPlace();
    if (!place) {
      co_await OnQueue<bool>(call.queue(),
                             [&](auto resume) { intake.WhenPlaceFree([resume] { resume(true); }); });
      if (Status status = job.status(call.stream_number()); !status.ok()) co_return status;
      continue;
    }
    span.begin = Clock::now();
    size_t filled = 0;
    while (filled < place->size()) {
      if (used == piece->size()) {
        ++piece;
        used = 0;
        continue;
      }
      const size_t bytes = std::min(place->size() - filled, piece->size() - used);
      std::memcpy(place->data() + filled, piece->data() + used, bytes);
      filled += bytes;
      used += bytes;
    }
    span.end = Clock::now();
    span.index = offset / static_cast<uint64_t>(job.block_bytes());
    span.bytes = filled;
    offset += filled;
    job.AddSpan(span);
    job.CountCopied(filled);
    intake.Filled(filled);
  }
  co_return Status();
}

}  // namespace tilewire::rpc
