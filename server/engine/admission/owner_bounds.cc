// What one owner may have in flight and on the device.
#include <string>

#include "server/engine/admission/admission.h"

namespace tilewire::engine {
namespace {
constexpr int64_t kOwnBytesRetryMs = 250;
// So many owners are known though they have nothing: who calls again and again is mostly one of few.
constexpr size_t kMostIdleOwners = 64;
}  // namespace

int Admission::MostInFlight(const Demand& demand) const {
  return demand.own.max_in_flight > 0 ? demand.own.max_in_flight : limits_.max_in_flight_per_identity;
}

OwnUse* Admission::OwnOf(const Demand& demand) {
  if (demand.own_use != nullptr && demand.own_use_as_of == own_forgotten_) return demand.own_use;
  const auto own = own_.find(demand.owner);
  demand.own_use = own == own_.end() ? nullptr : &own->second;
  demand.own_use_as_of = own_forgotten_;
  return demand.own_use;
}

OwnUse* Admission::MakeOwn(const Demand& demand) {
  demand.own_use = &own_.emplace(demand.owner, OwnUse{.most = MostInFlight(demand)}).first->second;
  demand.own_use_as_of = own_forgotten_;
  return demand.own_use;
}

bool Admission::HasOwnPlace(const Demand& demand) {
  if ((demand.small ? small_ : bulk_).shares.Full(demand.owner)) return false;
  const OwnUse* const own = OwnOf(demand);
  return own == nullptr || !own->HasAll();
}

void Admission::HoldOrResume(const std::string& owner) {
  const auto own = own_.find(owner);
  const bool all = own != own_.end() && own->second.HasAll();
  for (Class* c : {&small_, &bulk_})
    all || c->shares.Full(owner) ? c->queue.Hold(owner) : c->queue.Resume(owner);
}

void Admission::HoldOrResume(const Shares::Changed& owners) {
  for (const std::string& owner : owners) HoldOrResume(owner);
}

bool Admission::Rebind(const Demand& demand) {
  OwnUse* const own = OwnOf(demand);
  if (own == nullptr || own->most == MostInFlight(demand)) return false;
  own->most = MostInFlight(demand);
  HoldOrResume(demand.owner);
  return true;
}

void Admission::CountOwn(Demand* demand) {
  OwnUse* own = OwnOf(*demand);
  if (own == nullptr) {
    if (MostInFlight(*demand) == 0) return;
    // What the owner's latest request said holds, not what this one did before it waited.
    own = MakeOwn(*demand);
  }
  const bool had_all = own->HasAll();
  ++own->count;
  demand->counted = true;
  if (own->HasAll() != had_all) HoldOrResume(demand->owner);
}

void Admission::UncountOwn(const Demand& demand) {
  if (!demand.counted) return;
  OwnUse* const own = OwnOf(demand);
  const bool had_all = own->HasAll();
  --own->count;
  if (own->HasAll() != had_all) HoldOrResume(demand.owner);
  ForgetOwn(demand.owner);
}

void Admission::ForgetOwn(const std::string& owner) {
  if (own_.size() <= kMostIdleOwners) return;
  const auto own = own_.find(owner);
  if (own == own_.end() || own->second.count > 0 || own->second.bytes > 0 || room_.Count(owner) > 0) return;
  own_.erase(own);
  ++own_forgotten_;
}

Status Admission::TakeOwnBytes(Demand* demand) {
  const int64_t most = demand->own.device_bytes;
  OwnUse* own = OwnOf(*demand);
  if (demand->device_bytes == 0 || (most == 0 && own == nullptr)) return {};
  const int64_t held = own == nullptr ? 0 : own->bytes;
  const auto allowed = [most] { return std::to_string(most) + SaidBy(true, "device_bytes", ""); };
  if (most > 0 && demand->device_bytes > most)
    return OverLimit("device bytes of yours", std::to_string(demand->device_bytes), "at most " + allowed())
        .value();
  if (most > 0 && demand->device_bytes > most - held)
    return Status({.code = Code::kResourceExhausted,
                   .reason = "BUSY",
                   .message = "your jobs and arrays take " + std::to_string(held) +
                              " bytes on the device and this one " + std::to_string(demand->device_bytes) +
                              "; allowed: " + allowed(),
                   .field = "device bytes of yours",
                   .value = std::to_string(held + demand->device_bytes),
                   .allowed = allowed(),
                   .retry_after_ms = kOwnBytesRetryMs});
  if (own == nullptr) own = MakeOwn(*demand);
  own->bytes += demand->device_bytes;
  demand->bytes_counted = true;
  return {};
}

void Admission::ReturnOwnBytes(const Demand& demand) {
  // Of none, because all stay as arrays (Ticket::Split), nothing is known any more once those are gone.
  if (!demand.bytes_counted || demand.device_bytes == 0) return;
  OwnOf(demand)->bytes -= demand.device_bytes;
  ForgetOwn(demand.owner);
}

}  // namespace tilewire::engine
