#include "server/rpc/calls/backlog.h"

#include <algorithm>
#include <utility>

namespace tilewire::rpc {

Backlog::Place::Place(Backlog* backlog, JobClass job, std::string owner, TimePoint now)
    : backlog_(backlog), job_(job), owner_(std::move(owner)), came_(now) {
  const MutexLock lock(backlog_->mutex_);
  Queue& queue = backlog_->QueueOf(job_);
  told_ = queue.waits++ > 0;
  if (told_) ++queue.waiting[owner_];
}

Backlog::Place::~Place() {
  const MutexLock lock(backlog_->mutex_);
  if (runs_) {
    --backlog_->QueueOf(job_).runs;
  } else {
    Leaves();
  }
}

void Backlog::Place::Admitted(TimePoint now) {
  const MutexLock lock(backlog_->mutex_);
  Queue& queue = backlog_->QueueOf(job_);
  constexpr int kOften = 16;
  // Between two of which the first left others waiting.
  if (queue.crowded) queue.gap += (now - queue.admitted - queue.gap) / kOften;
  queue.waited = now - came_;
  queue.admitted = now;
  Leaves();
  queue.crowded = queue.waits > 0;
  runs_ = true;
  ++queue.runs;
}

void Backlog::Place::Leaves() {
  Queue& queue = backlog_->QueueOf(job_);
  if (--queue.waits == 0) queue.crowded = false;
  if (!told_) return;
  const auto own = queue.waiting.find(owner_);
  if (--own->second == 0) queue.waiting.erase(own);
}

std::optional<Clock::duration> Backlog::Refuses(JobClass job, const std::string& owner, TimePoint now,
                                                int places) {
  if (late_ == Clock::duration{}) return std::nullopt;
  const MutexLock lock(mutex_);
  Queue& queue = QueueOf(job);
  const Clock::duration gap = queue.crowded ? std::max(queue.gap, now - queue.admitted) : queue.gap;
  // What calls will wait is a guess; what they did wait, or that none was let in for as long, is not.
  const bool slow = queue.waited > late_ || (queue.waits > 0 && now - queue.admitted > late_);
  // Small ones wait for nothing but a place: fewer are on their way to one, each on a thread that the system
  // keeps waiting.
  const bool enough = job == JobClass::kBulk || queue.waits + queue.runs >= places;
  const bool late = enough && queue.waits > queue.runs && queue.waits * gap > late_;
  (late ? queue.late : queue.well) = now;
  // It stays behind while calls come that would wait too long, though those between them would not: else the
  // queue would grow anew each time that it is short again.
  if (late && slow && now - queue.well > late_) queue.behind = true;
  if (!late && now - queue.late > late_) queue.behind = false;
  if (!queue.behind || !late) return std::nullopt;
  const auto own = queue.waiting.find(owner);
  if (own == queue.waiting.end() || own->second * static_cast<int>(queue.waiting.size()) < queue.waits)
    return std::nullopt;
  return queue.waited;
}

}  // namespace tilewire::rpc
