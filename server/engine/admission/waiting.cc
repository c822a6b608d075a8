// Those who wait: who gets a place, whose turn it is, and how a wait ends otherwise.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "server/engine/admission/admission.h"

namespace tilewire::engine {
namespace {

constexpr int64_t kQueueRetryMs = 250;

/// By its own share of it, which a client may want to know apart from a queue that is full.
Status NoPlace(const std::string& message, size_t taken, const std::string& allowed) {
  return Status(
      {.code = Code::kResourceExhausted,
       .reason = "BUSY",
       .message = message + ": " + std::to_string(taken) + " of your requests wait; allowed: " + allowed,
       .field = "requests of yours that wait",
       .value = std::to_string(taken),
       .allowed = allowed,
       .retry_after_ms = kQueueRetryMs});
}
}  // namespace

Status Admission::MakePlace(const Demand& demand, Settlement* settlement) {
  const size_t own = room_.Count(demand.owner);
  const bool by_rule = demand.own.queue_length > 0;
  const int most = by_rule ? demand.own.queue_length : limits_.queue_length_per_identity;
  if (most > 0 && own >= static_cast<size_t>(most))
    return NoPlace("you have all your places in the queue", own,
                   std::to_string(most) + SaidBy(by_rule, "queue_length", "--queue-length-per-identity"));
  if (room_.size() < static_cast<size_t>(limits_.queue_length)) return {};
  const std::shared_ptr<Waiter> last = TakeOut(room_.WhoMakesRoomFor(demand.owner), false);
  if (!last)
    return Busy(std::string(kQueueFull) + " " + std::to_string(room_.size()) +
                    " requests wait; allowed: " + std::to_string(limits_.queue_length) + " (--queue-length)",
                kQueueRetryMs);
  timer_->Cancel(last->timer);
  ++refused_busy_;
  settlement->refused.emplace_back(
      [last](const Status& why) { Refuse(*last, why); },
      NoPlace("the queue is full, and you have most of it", room_.Count(last->demand.owner),
              "an even share of " + std::to_string(limits_.queue_length) + " (--queue-length)"));
  return {};
}

void Admission::Comes(const Demand& demand) {
  HoldOrResume(ClassOf(demand).shares.Came(demand.owner, timer_->Now()));
}

void Admission::LeavesUnserved(const Demand& demand) {
  ReturnOwnBytes(demand);
  HoldOrResume(ClassOf(demand).shares.Left(demand.owner, false, timer_->Now()));
}

bool Admission::LooksAgain() {
  bool changed = false;
  for (Class* c : {&small_, &bulk_}) {
    const auto owners = c->shares.Looked(timer_->Now());
    HoldOrResume(owners);
    changed = changed || !owners.empty();
  }
  return changed;
}

void Admission::LookLater() {
  if (look_ != 0 || waiting_.empty()) return;
  std::optional<TimePoint> due;
  for (const Class* c : {&small_, &bulk_})
    if (const auto at = c->shares.Due()) due = due ? std::min(*due, *at) : *at;
  if (due) look_ = timer_->At(*due, [this, look = ++looks_] { LookNow(look); });
}

void Admission::LookNow(uint64_t look) {
  Settlement settlement;
  {
    const MutexLock lock(mutex_);
    if (look == looks_) look_ = 0;  // else it was cancelled too late, and another is on its way
    LooksAgain();
    Settle(&settlement);
  }
  Finish(std::move(settlement));
}

void Admission::Wait(Id id, std::unique_ptr<Waiter> waiter) {
  const Demand& demand = waiter->demand;
  const auto bound =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits_.queue_seconds));
  waiter->timer = timer_->At(std::min(waiter->deadline, timer_->Now() + bound), [this, id] { Expire(id); });
  if (waiter->on_order) {
    orders_.Wait(id, demand.owner, MostInFlight(demand));
  } else {
    ClassOf(demand).queue.Push(id, demand.owner, demand.device_bytes + demand.pinned_bytes);
    bulk_waits_ += !demand.small;
  }
  room_.Add(id, demand.owner);
  ++waits_;
  waiting_.emplace(id, std::move(waiter));
}

std::unique_ptr<Admission::Waiter> Admission::TakeOut(Id id, bool served) {
  const auto it = waiting_.find(id);
  if (it == waiting_.end()) return nullptr;
  auto waiter = std::move(it->second);
  waiting_.erase(it);
  const Demand& demand = waiter->demand;
  if (waiter->on_order) {
    orders_.Remove(id, served);
    if (!served) ReturnOwnBytes(demand);
  } else {
    FairQueue& queue = ClassOf(demand).queue;
    served ? queue.Serve(id) : queue.Remove(id);
    if (!served) LeavesUnserved(demand);
    if (waiter->ordered) orders_.Leave(demand.owner);
    bulk_waits_ -= !demand.small;
  }
  room_.Remove(id, demand.owner);
  ForgetOwn(demand.owner);
  --waits_;
  if (waiting_.empty()) timer_->Cancel(std::exchange(look_, 0));
  return waiter;
}

void Admission::Refuse(const Waiter& waiter, const Status& why) {
  waiter.on_order ? waiter.on_order(Fail(why)) : waiter.decision(Fail(why));
}

bool Admission::SomebodyNext() {
  return Next(&small_) != 0 || Next(&bulk_) != 0 || orders_.Next() != 0 || LackingBytes() > 0;
}

Admission::Id Admission::Next(Class* c) {
  const Id head = c->queue.Head();
  if (head == 0) return 0;
  Waiter& first = *waiting_.at(head);
  if (Fits(first.demand)) return head;
  if (!PlaceFor(first.demand)) return 0;  // nor for anybody else of the class
  const TimePoint now = timer_->Now();
  if (!first.lacks_memory_since) first.lacks_memory_since = now;
  if (now - *first.lacks_memory_since >= kOvertakenAtMost) return 0;
  for (const Id id : c->queue.Firsts())
    if (Fits(waiting_.at(id)->demand)) return id;
  return 0;
}

Admission::Granted Admission::Pump() {
  Granted granted;
  // Small ones first; with one place in all, in turns.
  bulk_first_ = limits_.max_in_flight == 1 && !bulk_first_;
  Class* const order[] = {bulk_first_ ? &bulk_ : &small_, bulk_first_ ? &small_ : &bulk_};
  for (Class* c : order) {
    for (Id id = Next(c); id != 0; id = Next(c)) {
      auto waiter = TakeOut(id, true);
      timer_->Cancel(waiter->timer);
      Take(&waiter->demand);
      granted.emplace_back(std::move(waiter->decision), std::move(waiter->demand));
    }
  }
  return granted;
}

void Admission::Expire(Id id) {
  std::unique_ptr<Waiter> waiter;
  Settlement settlement;
  bool late = false;  ///< for its own deadline, so no matter of the queue
  {
    const MutexLock lock(mutex_);
    waiter = TakeOut(id, false);
    if (!waiter) return;
    late = timer_->Now() >= waiter->deadline;
    refused_busy_ += !late;
    Settle(&settlement);  // the one behind it may fit
  }
  Finish(std::move(settlement));
  Refuse(*waiter, late ? Status(Code::kDeadlineExceeded, "DEADLINE",
                                "the deadline passed while the request was queued")
                       : Busy("the request waited longer than --queue-seconds", kQueueRetryMs));
}

}  // namespace tilewire::engine
