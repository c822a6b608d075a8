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

bool Admission::HasOwnPlace(const Demand& demand) const {
  if ((demand.small ? small_ : bulk_).shares.Full(demand.owner)) return false;
  const auto own = own_.find(demand.owner);
  return own == own_.end() || !own->second.HasAll();
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
  const auto own = own_.find(demand.owner);
  if (own == own_.end() || own->second.most == MostInFlight(demand)) return false;
  own->second.most = MostInFlight(demand);
  HoldOrResume(demand.owner);
  return true;
}

void Admission::CountOwn(Demand* demand) {
  const int most = MostInFlight(*demand);
  auto found = own_.find(demand->owner);
  if (found == own_.end()) {
    if (most == 0) return;
    // What the owner's latest request said holds, not what this one did before it waited.
    found = own_.emplace(demand->owner, Own{.most = most}).first;
  }
  Own& own = found->second;
  const bool had_all = own.HasAll();
  ++own.count;
  demand->counted = true;
  if (own.HasAll() != had_all) HoldOrResume(demand->owner);
}

void Admission::UncountOwn(const Demand& demand) {
  if (!demand.counted) return;
  const auto own = own_.find(demand.owner);
  const bool had_all = own->second.HasAll();
  --own->second.count;
  if (own->second.HasAll() != had_all) HoldOrResume(demand.owner);
  ForgetOwn(own);
}

void Admission::ForgetOwn(Owners::iterator own) {
  if (own_.size() <= kMostIdleOwners || own == own_.end()) return;
  if (own->second.count == 0 && own->second.bytes == 0 && room_.Count(own->first) == 0) own_.erase(own);
}

Status Admission::TakeOwnBytes(Demand* demand) {
  const int64_t most = demand->own.device_bytes;
  auto own = own_.find(demand->owner);
  if (demand->device_bytes == 0 || (most == 0 && own == own_.end())) return {};
  const int64_t held = own == own_.end() ? 0 : own->second.bytes;
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
  if (own == own_.end()) own = own_.emplace(demand->owner, Own{.most = MostInFlight(*demand)}).first;
  own->second.bytes += demand->device_bytes;
  demand->bytes_counted = true;
  return {};
}

void Admission::ReturnOwnBytes(const Demand& demand) {
  // Of none, because all stay as arrays (Ticket::Split), nothing is known any more once those are gone.
  if (!demand.bytes_counted || demand.device_bytes == 0) return;
  const auto own = own_.find(demand.owner);
  own->second.bytes -= demand.device_bytes;
  ForgetOwn(own);
}

}  // namespace tilewire::engine
