#include "server/rpc/calls/backlog.h"

#include <algorithm>
#include <random>
#include <utility>

namespace tilewire::rpc {
namespace {

// Of what calls wait and have waited too long: clients that hold back for so long leave time to make up for
// it, and do not come again all at once.
constexpr int kLeastPercent = 75, kMostPercent = 225;
constexpr std::chrono::milliseconds kShortestHold{5}, kLongestHold{250};

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

bool Backlog::IsBehind(Queue* queue, const std::string& owner, TimePoint now) {
  const Clock::duration gap = queue->crowded ? std::max(queue->gap, now - queue->admitted) : queue->gap;
  // What calls will wait is a guess; what they did wait, or that none was let in for as long, is not.
  const bool slow = queue->waited > late_ || (queue->waits > 0 && now - queue->admitted > late_);
  const bool late = queue->waits > queue->runs && queue->waits * gap > late_;
  (late ? queue->late : queue->well) = now;
  // It stays behind while calls come that would wait too long, though those between them would not: else the
  // queue would grow anew each time that it is short again.
  if (late && slow && now - queue->well > late_) queue->behind = true;
  if (!late && now - queue->late > late_) queue->behind = false;
  if (!queue->behind || !late) return false;
  const auto own = queue->waiting.find(owner);
  return own != queue->waiting.end() && own->second * static_cast<int>(queue->waiting.size()) >= queue->waits;
}

TimePoint Backlog::AsksSince(Queue* queue, Clock::duration waited, TimePoint now) {
  if (waited <= late_ && queue->waits < nearly_full_) return queue->asks_since = kNever;
  return queue->asks_since = std::min(queue->asks_since, now);
}

bool Backlog::Asks(Refusal* refusal, Clock::duration behind, TimePoint now, std::atomic<TimePoint>* told) {
  TimePoint until = told->load(std::memory_order_relaxed);
  if (now < until) return false;
  static thread_local std::minstd_rand random{std::random_device{}()};
  const int percent = std::uniform_int_distribution(kLeastPercent, kMostPercent)(random);
  refusal->hold =
      std::clamp<Clock::duration>((refusal->waits + behind) * percent / 100, kShortestHold, kLongestHold);
  refusal->others = told->compare_exchange_strong(until, now + refusal->hold);
  return refusal->others;
}

std::optional<Backlog::Refusal> Backlog::Full(JobClass job, TimePoint now, std::atomic<TimePoint>* told) {
  Refusal refusal;
  {
    const MutexLock lock(mutex_);
    const Queue& queue = QueueOf(job);
    if (late_ == Clock::duration{} || queue.waits < nearly_full_) return std::nullopt;
    refusal.waits = queue.waited;
  }
  return Asks(&refusal, {}, now, told) ? std::optional(refusal) : std::nullopt;
}

std::optional<Backlog::Refusal> Backlog::Refuses(JobClass job, const std::string& owner,
                                                 Clock::duration waited, TimePoint now,
                                                 std::atomic<TimePoint>* told) {
  if (late_ == Clock::duration{}) return std::nullopt;
  Refusal refusal;
  TimePoint since;
  bool behind;
  {
    const MutexLock lock(mutex_);
    Queue& queue = QueueOf(job);
    since = AsksSince(&queue, waited, now);
    behind = IsBehind(&queue, owner, now);
    refusal.waits = std::max(waited, queue.waits > 0 ? queue.waited : Clock::duration{});
  }
  const Clock::duration asks = since < now ? now - since : Clock::duration{};
  if ((behind || (since < now && asks >= late_ / 2)) && Asks(&refusal, asks, now, told)) return refusal;
  refusal.hold = std::clamp<Clock::duration>(2 * refusal.waits, kShortestHold, kLongestHold);
  return behind ? std::optional(refusal) : std::nullopt;
}

}  // namespace tilewire::rpc
