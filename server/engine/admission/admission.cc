#include "server/engine/admission/admission.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/base/limits.h"

namespace tilewire::engine {
namespace {
// The small class's slice: room for some 60 requests of full size, but never over an eighth of a small
// budget.
constexpr int64_t kSmallDeviceBytes = 64 * kMiB, kSmallPinnedBytes = 24 * kMiB;
constexpr int64_t kQueueRetryMs = 250;
}  // namespace

Ticket& Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    if (admission_) admission_->Release(demand_);
    admission_ = std::exchange(other.admission_, nullptr);
    demand_ = other.demand_;
  }
  return *this;
}

Ticket::~Ticket() {
  if (admission_) admission_->Release(demand_);
}

Ticket Ticket::Split(int64_t device_bytes) {
  if (!admission_) return {};
  demand_.device_bytes -= device_bytes;
  return Ticket(admission_, {.small = demand_.small, .device_bytes = device_bytes, .resident = true});
}

Admission::Admission(const AdmissionLimits& limits, Timer* timer, Executor* executor)
    : limits_(limits),
      timer_(timer),
      executor_(executor),
      max_bulk_(std::max(1, limits.max_in_flight * 3 / 4)) {
  small_.device_whole = std::min(kSmallDeviceBytes, limits.device_bytes / 8);
  small_.pinned_whole = std::min(kSmallPinnedBytes, limits.pinned_bytes / 8);
  bulk_.device_whole = bulk_device_whole_ = limits.device_bytes - small_.device_whole;
  bulk_.pinned_whole = limits.pinned_bytes - small_.pinned_whole;
  for (Class* c : {&small_, &bulk_}) {
    c->device_bytes = c->device_whole;
    c->pinned_bytes = c->pinned_whole;
  }
}

Status Admission::NeverFits(Demand* demand) const {
  // With a tiny budget the small slice may be too narrow for a small request; then it goes with the bulk.
  if (demand->small &&
      (demand->device_bytes > small_.device_whole || demand->pinned_bytes > small_.pinned_whole))
    demand->small = false;
  const Class& c = demand->small ? small_ : bulk_;
  if (!demand->small && demand->held_bytes > 0 && demand->device_bytes > c.device_whole - demand->held_bytes)
    return OverLimit("device bytes of the request beside the arrays that it uses",
                     std::to_string(demand->device_bytes),
                     "at most " + std::to_string(c.device_whole - demand->held_bytes) + " (--device-bytes)")
        .value();
  if (demand->device_bytes > c.device_whole)
    return OverLimit("device bytes of the request", std::to_string(demand->device_bytes),
                     "at most " + std::to_string(c.device_whole) + " (--device-bytes)")
        .value();
  if (demand->pinned_bytes > c.pinned_whole)
    return OverLimit("staging bytes of the request", std::to_string(demand->pinned_bytes),
                     "at most " + std::to_string(c.pinned_whole) + " (--pinned-bytes, --block-bytes)")
        .value();
  return {};
}

bool Admission::PlaceFor(const Demand& demand) const {
  // While bulk waits, a quarter of the places is not for small requests: their stream may never end.
  const int small_places =
      bulk_.queue.empty() ? limits_.max_in_flight : std::max(1, limits_.max_in_flight * 3 / 4);
  const bool place = demand.small ? in_flight_ - bulk_in_flight_ < small_places : bulk_in_flight_ < max_bulk_;
  return in_flight_ < limits_.max_in_flight && place;
}

bool Admission::Fits(const Demand& demand) const {
  const Class& c = demand.small ? small_ : bulk_;
  return PlaceFor(demand) && demand.device_bytes <= c.device_bytes && demand.pinned_bytes <= c.pinned_bytes;
}

void Admission::Take(const Demand& demand) {
  Class& c = ClassOf(demand);
  c.device_bytes -= demand.device_bytes;
  c.pinned_bytes -= demand.pinned_bytes;
  ++in_flight_;
  bulk_in_flight_ += !demand.small;
  ++admitted_;
}

Admission::Id Admission::Request(Demand demand, TimePoint deadline, Decision decision) {
  Status refusal;
  {
    RelockableMutexLock lock(mutex_);
    if (!closed_.ok()) {
      refusal = closed_;
    } else if (refusal = NeverFits(&demand); !refusal.ok()) {
      ++refused_limit_;
    } else if (Class& c = ClassOf(demand); c.queue.empty() && Fits(demand)) {
      Take(demand);
    } else if (static_cast<int>(waiting_.size()) >= limits_.queue_length) {
      ++refused_busy_;
      refusal = Busy("the queue is full: " + std::to_string(waiting_.size()) + " requests wait; allowed: " +
                         std::to_string(limits_.queue_length) + " (--queue-length)",
                     kQueueRetryMs);
    } else {
      const Id id = ++last_id_;
      auto waiter = std::make_unique<Waiter>(Waiter{demand, deadline, std::move(decision), 0, {}});
      waiter->place = c.queue.insert(c.queue.end(), id);
      const auto bound =
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits_.queue_seconds));
      waiter->timer = timer_->At(std::min(deadline, timer_->Now() + bound), [this, id] { Expire(id); });
      waiting_.emplace(id, std::move(waiter));
      bulk_waits_ += !demand.small;
      Settlement settlement;
      if (LackingBytes() > 0) settlement = Settle();
      lock.Unlock();
      Finish(std::move(settlement));
      return id;
    }
  }
  if (refusal.ok()) {
    decision(Ticket(this, demand));
  } else {
    decision(Fail(refusal));
  }
  return 0;
}

std::unique_ptr<Admission::Waiter> Admission::TakeOut(Id id) {
  const auto it = waiting_.find(id);
  if (it == waiting_.end()) return nullptr;
  auto waiter = std::move(it->second);
  waiting_.erase(it);
  ClassOf(waiter->demand).queue.erase(waiter->place);
  bulk_waits_ -= !waiter->demand.small;
  return waiter;
}

Admission::Granted Admission::Pump() {
  Granted granted;
  // Small ones first; with one place in all, in turns.
  bulk_first_ = limits_.max_in_flight == 1 && !bulk_first_;
  Class* const order[] = {bulk_first_ ? &bulk_ : &small_, bulk_first_ ? &small_ : &bulk_};
  for (Class* c : order) {
    while (!c->queue.empty()) {
      const Id id = c->queue.front();
      const Demand demand = waiting_.at(id)->demand;
      if (!Fits(demand)) break;
      auto waiter = TakeOut(id);
      timer_->Cancel(waiter->timer);
      Take(demand);
      granted.emplace_back(std::move(waiter->decision), demand);
    }
  }
  return granted;
}

void Admission::Release(const Demand& demand) {
  Settlement settlement;
  {
    const MutexLock lock(mutex_);
    Class& c = ClassOf(demand);
    c.device_bytes += demand.device_bytes;
    c.pinned_bytes += demand.pinned_bytes;
    if (!demand.resident) {
      --in_flight_;
      bulk_in_flight_ -= !demand.small;
    }
    settlement = Settle();
  }
  Finish(std::move(settlement));
}

void Admission::Retry() {
  Settlement settlement;
  {
    const MutexLock lock(mutex_);
    if (!bulk_.queue.empty()) settlement = Settle();
  }
  Finish(std::move(settlement));
}

int64_t Admission::LackingBytes() const {
  if (!reclaim_ || bulk_.queue.empty()) return 0;
  const Demand& first = waiting_.at(bulk_.queue.front())->demand;
  if (!PlaceFor(first) || first.pinned_bytes > bulk_.pinned_bytes) return 0;
  return std::max<int64_t>(first.device_bytes - bulk_.device_bytes, 0);
}

Admission::Settlement Admission::Settle() {
  Settlement settlement{.granted = Pump()};
  if (!reclaims_ && LackingBytes() > 0) reclaims_ = settlement.reclaim = true;
  return settlement;
}

void Admission::Finish(Settlement settlement) {
  if (settlement.granted.empty() && !settlement.reclaim) return;
  executor_->Post([this, settlement = std::move(settlement)]() mutable {
    for (auto& [decision, taken] : std::exchange(settlement.granted, {})) decision(Ticket(this, taken));
    if (settlement.reclaim) Reclaim();
  });
}

/// What is reclaimed comes back as tickets, which settle the rest.
void Admission::Reclaim() {
  int64_t lacking = 0;
  {
    const MutexLock lock(mutex_);
    reclaims_ = false;
    lacking = LackingBytes();
  }
  if (lacking > 0) reclaim_(lacking);
}

void Admission::Expire(Id id) {
  std::unique_ptr<Waiter> waiter;
  Settlement settlement;
  bool late = false;  ///< for its own deadline, so no matter of the queue
  {
    const MutexLock lock(mutex_);
    waiter = TakeOut(id);
    if (!waiter) return;
    late = timer_->Now() >= waiter->deadline;
    refused_busy_ += !late;
    settlement = Settle();  // the one behind it may fit
  }
  Finish(std::move(settlement));
  if (late) {
    waiter->decision(Fail(
        Status(Code::kDeadlineExceeded, "DEADLINE", "the deadline passed while the request was queued")));
  } else {
    waiter->decision(Fail(Busy("the request waited longer than --queue-seconds", kQueueRetryMs)));
  }
}

void Admission::Cancel(Id id, const Status& why) {
  std::unique_ptr<Waiter> waiter;
  Settlement settlement;
  {
    const MutexLock lock(mutex_);
    waiter = TakeOut(id);
    if (!waiter) return;
    timer_->Cancel(waiter->timer);
    settlement = Settle();
  }
  Finish(std::move(settlement));
  waiter->decision(Fail(why));
}

void Admission::Close(const Status& why) {
  std::list<std::unique_ptr<Waiter>> refused;
  {
    MutexLock lock(mutex_);
    closed_ = why;
    while (!waiting_.empty()) {
      auto waiter = TakeOut(waiting_.begin()->first);
      timer_->Cancel(waiter->timer);
      refused.push_back(std::move(waiter));
    }
  }
  for (auto& waiter : refused) waiter->decision(Fail(why));
}

void Admission::Snapshot(EngineStats* stats) const {
  MutexLock lock(mutex_);
  stats->device_bytes = limits_.device_bytes;
  stats->pinned_bytes = limits_.pinned_bytes;
  stats->device_bytes_in_use = limits_.device_bytes - small_.device_bytes - bulk_.device_bytes;
  stats->pinned_bytes_in_use = limits_.pinned_bytes - small_.pinned_bytes - bulk_.pinned_bytes;
  stats->jobs_in_flight = in_flight_;
  stats->jobs_queued = static_cast<uint32_t>(waiting_.size());
  stats->jobs_admitted = admitted_;
  stats->jobs_refused_busy = refused_busy_;
  stats->jobs_refused_limit = refused_limit_;
}

}  // namespace tilewire::engine
