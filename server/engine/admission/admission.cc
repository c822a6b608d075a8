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
}  // namespace

Admission::Admission(const AdmissionLimits& limits, Timer* timer, Executor* executor)
    : limits_(limits),
      timer_(timer),
      executor_(executor),
      max_bulk_(std::max(1, limits.max_in_flight * 3 / 4)),
      rates_(limits.rates),
      orders_(limits.max_in_flight) {
  small_.device_whole = std::min(kSmallDeviceBytes, limits.device_bytes / 8);
  small_.pinned_whole = std::min(kSmallPinnedBytes, limits.pinned_bytes / 8);
  bulk_.device_whole = bulk_device_whole_ = limits.device_bytes - small_.device_whole;
  bulk_.pinned_whole = limits.pinned_bytes - small_.pinned_whole;
  for (Class* c : {&small_, &bulk_}) {
    c->device_bytes = c->device_whole;
    c->pinned_bytes = c->pinned_whole;
    c->shares = Shares(limits.shared_in_flight);
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

Status Admission::Charge(const std::string& owner, int64_t bytes, const Rates& own) {
  Status status = rates_.Take(owner, bytes, timer_->Now(), own);
  if (status.ok()) return status;
  const MutexLock lock(mutex_);
  ++refused_busy_;
  return status;
}

bool Admission::PlaceFor(const Demand& demand) {
  // While bulk waits, a quarter of the places is not for small requests: their stream may never end.
  const int small_places =
      bulk_.queue.empty() ? limits_.max_in_flight : std::max(1, limits_.max_in_flight * 3 / 4);
  const bool place = demand.small ? in_flight_ - bulk_in_flight_ < small_places : bulk_in_flight_ < max_bulk_;
  return in_flight_ < limits_.max_in_flight && place && HasOwnPlace(demand);
}

bool Admission::Fits(const Demand& demand) {
  const Class& c = demand.small ? small_ : bulk_;
  return PlaceFor(demand) && demand.device_bytes <= c.device_bytes && demand.pinned_bytes <= c.pinned_bytes;
}

void Admission::Take(Demand* demand) {
  Class& c = ClassOf(*demand);
  c.device_bytes -= demand->device_bytes;
  c.pinned_bytes -= demand->pinned_bytes;
  ++in_flight_;
  bulk_in_flight_ += !demand->small;
  CountOwn(demand);
  HoldOrResume(c.shares.Took(demand->owner));
  ++admitted_;
}

Status Admission::Admissible(Demand* demand) {
  if (!closed_.ok()) return closed_;
  Status refusal = NeverFits(demand);
  if (refusal.ok()) refusal = TakeOwnBytes(demand);
  if (!refusal.ok()) ++(refusal.reason() == "LIMIT" ? refused_limit_ : refused_busy_);
  return refusal;
}

Admission::Id Admission::Request(Demand demand, TimePoint deadline, Decision decision) {
  Status refusal;
  Settlement settlement, rebound;
  Id id = 0;
  {
    const MutexLock lock(mutex_);
    // By a new policy, or since others are gone: some that wait may go now.
    const bool anew = Rebind(demand);
    if (LooksAgain() || anew) Settle(&rebound);
    if (refusal = Admissible(&demand); !refusal.ok()) {
      // for good, or for now
    } else if (Comes(demand); ClassOf(demand).queue.Head() == 0 && Fits(demand)) {
      Take(&demand);
    } else if (refusal = MakePlace(demand, &settlement); !refusal.ok()) {
      LeavesUnserved(demand);
      ++refused_busy_;
    } else {
      id = ++last_id_;
      Wait(id, std::make_unique<Waiter>(Waiter{
                   .demand = std::move(demand), .deadline = deadline, .decision = std::move(decision)}));
      // Others may be let in by who had to go for it, it itself where it may overtake.
      if (SomebodyNext()) Settle(&settlement);
    }
  }
  Finish(std::move(rebound));
  Finish(std::move(settlement));
  if (id > 0) return id;
  if (refusal.ok()) {
    decision(Ticket(this, std::move(demand)));
  } else {
    decision(Fail(refusal));
  }
  return 0;
}

std::optional<Ticket> Admission::AtOnce(Demand* demand) {
  {
    const MutexLock lock(mutex_);
    if (!closed_.ok() || waits_.load() > 0 || !NeverFits(demand).ok()) return std::nullopt;
    Rebind(*demand);
    Comes(*demand);
    if (!Fits(*demand) || !TakeOwnBytes(demand).ok()) {
      LeavesUnserved(*demand);
      return std::nullopt;
    }
    Take(demand);
  }
  return Ticket(this, std::move(*demand));
}

void Admission::Release(const Demand& demand) {
  Settlement settlement;
  {
    const MutexLock lock(mutex_);
    Class& c = ClassOf(demand);
    c.device_bytes += demand.device_bytes;
    c.pinned_bytes += demand.pinned_bytes;
    ReturnOwnBytes(demand);
    if (!demand.resident) {
      --in_flight_;
      bulk_in_flight_ -= !demand.small;
      UncountOwn(demand);
      HoldOrResume(c.shares.Left(demand.owner, true, timer_->Now()));
    }
    Settle(&settlement);
  }
  Finish(std::move(settlement));
}

void Admission::Retry() {
  Settlement settlement;
  {
    const MutexLock lock(mutex_);
    if (!bulk_.queue.empty()) Settle(&settlement);
  }
  Finish(std::move(settlement));
}

int64_t Admission::LackingBytes() {
  const Id head = reclaim_ ? bulk_.queue.Head() : 0;
  if (head == 0) return 0;
  const Demand& first = waiting_.at(head)->demand;
  if (!PlaceFor(first) || first.pinned_bytes > bulk_.pinned_bytes) return 0;
  return std::max<int64_t>(first.device_bytes - bulk_.device_bytes, 0);
}

void Admission::Settle(Settlement* settlement) {
  settlement->granted = Pump();
  GiveOrders(settlement);
  if (!reclaims_ && LackingBytes() > 0) reclaims_ = settlement->reclaim = true;
  LookLater();
}

void Admission::Finish(Settlement settlement) {
  if (settlement.granted.empty() && settlement.ordered.empty() && settlement.refused.empty() &&
      !settlement.reclaim)
    return;
  executor_->Post([this, settlement = std::move(settlement)]() mutable {
    for (auto& [decision, taken] : std::exchange(settlement.granted, {}))
      decision(Ticket(this, std::move(taken)));
    for (auto& [on_order, id] : std::exchange(settlement.ordered, {})) on_order(Order(this, id));
    for (auto& [refuse, why] : std::exchange(settlement.refused, {})) refuse(why);
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

void Admission::Close(const Status& why) {
  std::list<std::unique_ptr<Waiter>> refused;
  {
    MutexLock lock(mutex_);
    closed_ = why;
    while (!waiting_.empty()) {
      auto waiter = TakeOut(waiting_.begin()->first, false);
      timer_->Cancel(waiter->timer);
      refused.push_back(std::move(waiter));
    }
  }
  for (auto& waiter : refused) Refuse(*waiter, why);
}

}  // namespace tilewire::engine
