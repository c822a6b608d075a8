#include "server/engine/job/intake.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace tilewire::engine {
namespace {
Status RunRule(const std::string& message) {
  return Status(Code::kInvalidArgument, "RUN_RULE", message);
}
}  // namespace

Intake::Intake(std::shared_ptr<Job> job, int stream)
    : job_(std::move(job)),
      stream_(stream),
      operand_bytes_(job_->operation().operands()[0].bytes()),
      block_bytes_(job_->block_bytes()),
      runs_(job_->operation().operands().size()) {}

Intake::~Intake() {
  for (Run& run : runs_)
    if (run.block) job_->ReturnBlock(*run.block);
}

Status Intake::BeginChunk(uint32_t operand, uint64_t offset, uint64_t bytes) {
  if (operand >= runs_.size())
    return BadValue("chunk.operand", std::to_string(operand), "0 to " + std::to_string(runs_.size() - 1))
        .value();
  if (!job_->streamed(operand))
    return BadValue("chunk.operand", std::to_string(operand),
                    "an operand that is neither a resident array nor in a region; nothing is sent for those")
        .value();
  const std::string where = "operand " + std::to_string(operand) + ", offset " + std::to_string(offset);
  if (bytes == 0) return BadValue("chunk.data", "empty (" + where + ")", "1 byte or more").value();
  const auto size = static_cast<uint64_t>(operand_bytes_);
  if (offset >= size || bytes > size - offset)
    return BadValue("chunk of " + where, std::to_string(bytes) + " bytes long",
                    "bytes within the operand's " + std::to_string(size))
        .value();

  Run& run = runs_[operand];
  const auto start = static_cast<int64_t>(offset);
  const bool may_start = run.next < 0 || run.next % block_bytes_ == 0 || run.next == operand_bytes_;
  if (start != run.next) {
    if (!may_start)
      return RunRule(where + ": the open run continues at " + std::to_string(run.next) +
                     "; it must ascend without gaps to a multiple of " + std::to_string(block_bytes_));
    if (start % block_bytes_ != 0)
      return RunRule(where + ": a run must start at a multiple of " + std::to_string(block_bytes_));
  }
  run.next = start;
  operand_ = operand;
  chunk_left_ = bytes;
  // Claim every block that the chunk begins, so that a repeated byte is refused before anything is
  // overwritten.
  const int64_t last = (start + static_cast<int64_t>(bytes) - 1) / block_bytes_;
  for (int64_t block = (start + block_bytes_ - 1) / block_bytes_; block <= last; ++block)
    TILEWIRE_RETURN_IF_ERROR(job_->ClaimBlock(operand, block));
  return {};
}

std::optional<std::span<std::byte>> Intake::NextPlace() {
  Run& run = runs_[operand_];
  if (!run.block) run.block = job_->TakeBlock(run.next / block_bytes_);
  if (!run.block) return std::nullopt;
  return job_->PlaceIn(*run.block, operand_, run.next, static_cast<int64_t>(chunk_left_));
}

void Intake::WhenPlaceFree(std::function<void()> function) {
  job_->WhenBlockFree(std::move(function), stream_, runs_[operand_].next / block_bytes_);
}

void Intake::Filled(size_t bytes, const Span* staged) {
  Run& run = runs_[operand_];
  const int64_t index = run.next / block_bytes_;
  run.next += static_cast<int64_t>(bytes);
  chunk_left_ -= bytes;
  job_->CountMoved(bytes);
  if (run.next % block_bytes_ != 0 && run.next != operand_bytes_) {
    if (staged) job_->AddSpan(*staged);
    return;
  }
  job_->CommitBlock(operand_, index, *std::exchange(run.block, std::nullopt), staged);
  blocks_done_.fetch_add(1, std::memory_order_relaxed);
}

Result<bool> Intake::Take(const Chunk& chunk) {
  uint64_t bytes = 0;
  for (const auto& slice : chunk.slices) bytes += slice.size();
  if (chunk.received)
    job_->AddSpan({.stage = Stage::kReceive,
                   .begin = chunk.received->first,
                   .end = chunk.received->second,
                   .track = static_cast<uint32_t>(stream_),
                   .index = chunk.offset / static_cast<uint64_t>(block_bytes_),
                   .bytes = bytes,
                   .operand = chunk.operand});
  TILEWIRE_RETURN_IF_ERROR(BeginChunk(chunk.operand, chunk.offset, bytes));
  (void)job_->Land();
  slices_ = chunk.slices;
  used_ = 0;
  return CopyOn();
}

Result<bool> Intake::GoOn() {
  if (Status status = job_->status(stream_); !status.ok()) return Fail(std::move(status));
  return CopyOn();
}

/// What is copied is counted and recorded before its block is given to the job: with the last one everything
/// may be over, and told.
bool Intake::CopyOn() {
  Span span{.stage = Stage::kStage, .track = static_cast<uint32_t>(stream_), .operand = operand_};
  while (chunk_left_ > 0) {
    const auto place = NextPlace();
    if (!place) return false;
    span.index = static_cast<uint64_t>(runs_[operand_].next / block_bytes_);
    span.bytes = place->size();
    span.begin = Clock::now();
    Gather(*place);
    span.end = Clock::now();
    job_->CountCopied(span.bytes);
    Filled(place->size(), &span);
  }
  return true;
}

void Intake::Gather(std::span<std::byte> place) {
  while (!place.empty()) {
    if (used_ == slices_.front().size()) {
      slices_ = slices_.subspan(1);
      used_ = 0;
      continue;
    }
    const size_t bytes = std::min(place.size(), slices_.front().size() - used_);
    std::memcpy(place.data(), slices_.front().data() + used_, bytes);
    place = place.subspan(bytes);
    used_ += bytes;
  }
}

Status Intake::HalfClosed() const {
  for (size_t operand = 0; operand < runs_.size(); ++operand)
    if (runs_[operand].next > 0 && runs_[operand].next % block_bytes_ != 0 &&
        runs_[operand].next != operand_bytes_)
      return Status(Code::kInvalidArgument, "BYTES_MISSING",
                    "the client half-closed, but operand " + std::to_string(operand) + " ends at byte " +
                        std::to_string(runs_[operand].next) + " of " + std::to_string(operand_bytes_));
  return {};
}

}  // namespace tilewire::engine
