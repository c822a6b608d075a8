// Those who are open: who has an order, and what becomes of it.
#include <utility>

#include "server/engine/admission/admission.h"

namespace tilewire::engine {

Order::~Order() {
  if (admission_) admission_->Cancel(id_, Status(Code::kCancelled, "CANCELLED", "the order was given back"));
}

Admission::Id Admission::RequestOrder(Demand demand, TimePoint deadline, OnOrder on_order) {
  Status refusal;
  Settlement settlement, rebound;
  Id id = 0;
  bool waits = false;
  {
    const MutexLock lock(mutex_);
    const bool anew = Rebind(demand);
    if (LooksAgain() || anew) Settle(&rebound);
    if (refusal = Admissible(&demand); refusal.ok()) {
      waits = !orders_.Free(demand.owner, MostInFlight(demand));
      // Who would have to wait now may later, but not if the queue is full already: better told before
      // anything is sent.
      const bool served = !waits && ClassOf(demand).queue.Head() == 0 && Fits(demand);
      if (!served) refusal = MakePlace(demand, &settlement);
      if (!refusal.ok()) {
        ReturnOwnBytes(demand);
        ++refused_busy_;
      } else {
        id = ++last_id_;
        auto waiter = std::make_unique<Waiter>(
            Waiter{.demand = std::move(demand), .deadline = deadline, .ordered = !waits});
        if (waits) {
          waiter->on_order = std::move(on_order);
          Wait(id, std::move(waiter));
        } else {
          orders_.Take(waiter->demand.owner, MostInFlight(waiter->demand));
          open_.emplace(id, std::move(waiter));
        }
      }
      if (SomebodyNext()) Settle(&settlement);
    }
  }
  Finish(std::move(rebound));
  Finish(std::move(settlement));
  if (!refusal.ok()) {
    on_order(Fail(refusal));
    return 0;
  }
  if (waits) return id;
  on_order(Order(this, id));
  return 0;
}

void Admission::GiveOrders(Settlement* settlement) {
  for (Id id = orders_.Next(); id != 0; id = orders_.Next()) {
    auto waiter = TakeOut(id, true);
    timer_->Cancel(waiter->timer);
    orders_.Take(waiter->demand.owner, MostInFlight(waiter->demand));
    waiter->ordered = true;
    settlement->ordered.emplace_back(std::exchange(waiter->on_order, nullptr), id);
    open_.emplace(id, std::move(waiter));
  }
}

void Admission::Bind(Id id, Decision decision) {
  {
    const MutexLock lock(mutex_);
    const auto it = open_.find(id);
    if (it != open_.end()) {
      it->second->decision = std::move(decision);
      return;
    }
  }
  decision(Fail(Status(Code::kCancelled, "CANCELLED", "the request was given up")));
}

void Admission::LeavesOpen(const Waiter& waiter) {
  ReturnOwnBytes(waiter.demand);
  orders_.Leave(waiter.demand.owner);
}

void Admission::Land(Id id) {
  std::unique_ptr<Waiter> waiter;
  Status refusal;
  Settlement settlement;
  {
    const MutexLock lock(mutex_);
    const auto it = open_.find(id);
    if (it == open_.end()) return;
    waiter = std::move(it->second);
    open_.erase(it);
    Demand& demand = waiter->demand;
    bool changed = LooksAgain();  // since others are gone
    if (refusal = closed_; !refusal.ok()) {
      LeavesOpen(*waiter);
    } else if (Comes(demand); ClassOf(demand).queue.Head() == 0 && Fits(demand)) {
      Take(&demand);
      orders_.Leave(demand.owner);
    } else {
      Wait(id, std::move(waiter));
      changed = true;
    }
    if (changed || SomebodyNext()) Settle(&settlement);
  }
  Finish(std::move(settlement));
  if (!waiter) return;
  if (!refusal.ok()) return waiter->decision(Fail(refusal));
  waiter->decision(Ticket(this, std::move(waiter->demand)));
}

void Admission::Cancel(Id id, const Status& why) {
  std::unique_ptr<Waiter> waiter;
  Settlement settlement;
  {
    const MutexLock lock(mutex_);
    const auto it = open_.find(id);
    if (it != open_.end()) {
      waiter = std::move(it->second);
      open_.erase(it);
      LeavesOpen(*waiter);
    } else if (waiter = TakeOut(id, false); waiter) {
      timer_->Cancel(waiter->timer);
    }
    if (!waiter) return;
    Settle(&settlement);
  }
  Finish(std::move(settlement));
  if (waiter->on_order || waiter->decision) Refuse(*waiter, why);
}

}  // namespace tilewire::engine
