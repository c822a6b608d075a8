#include "server/rpc/calls/backlog.h"

#include <algorithm>
#include <random>
#include <utility>

namespace tilewire::rpc {
namespace {

// Of what calls wait and have waited too long: clients that hold back for so long leave time to make up for
// it, and do not come again all at once.
constexpr int kLeastPercent = 75, kMostPercent = 225;
constexpr std::chrono::milliseconds kLongestHold{250};

}  // namespace

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

bool Backlog::Refuses(JobClass job, const std::string& owner, TimePoint now) {
  if (late_ == Clock::duration{}) return false;
  const MutexLock lock(mutex_);
  Queue& queue = QueueOf(job);
  const Clock::duration gap = queue.crowded ? std::max(queue.gap, now - queue.admitted) : queue.gap;
  // What calls will wait is a guess; what they did wait, or that none was let in for as long, is not.
  const bool slow = queue.waited > late_ || (queue.waits > 0 && now - queue.admitted > late_);
  const bool late = queue.waits > queue.runs && queue.waits * gap > late_;
  (late ? queue.late : queue.well) = now;
  // It stays behind while calls come that would wait too long, though those between them would not: else the
  // queue would grow anew each time that it is short again.
  if (late && slow && now - queue.well > late_) queue.behind = true;
  if (!late && now - queue.late > late_) queue.behind = false;
  if (!queue.behind || !late) return false;
  const auto own = queue.waiting.find(owner);
  return own != queue.waiting.end() && own->second * static_cast<int>(queue.waiting.size()) >= queue.waits;
}

Clock::duration Backlog::Waited(JobClass job) {
  const MutexLock lock(mutex_);
  return QueueOf(job).waited;
}

Clock::duration Backlog::HoldsBack(JobClass job, Clock::duration waited, TimePoint now,
                                   std::atomic<TimePoint>* told) {
  if (late_ == Clock::duration{}) return {};
  Clock::duration waits = waited;
  TimePoint since;
  {
    const MutexLock lock(mutex_);
    Queue& queue = QueueOf(job);
    const bool full = queue.waits >= nearly_full_;
    if (waited <= late_ && !full) {
      queue.behind_since = kNever;
      return {};
    }
    if (full) waits = std::max(waits, queue.waited);
    since = queue.behind_since = std::min(queue.behind_since, now);
  }
  TimePoint until = told->load(std::memory_order_relaxed);
  if (now - since < late_ / 2 || now < until) return {};
  static thread_local std::minstd_rand random{std::random_device{}()};
  const auto hold = std::min<Clock::duration>(
      (waits + (now - since)) * std::uniform_int_distribution(kLeastPercent, kMostPercent)(random) / 100,
      kLongestHold);
  return told->compare_exchange_strong(until, now + hold) ? hold : Clock::duration{};
}

}  // namespace tilewire::rpc
