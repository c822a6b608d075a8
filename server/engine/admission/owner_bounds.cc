// What one owner may have in flight and on the device.
#include <string>

#include "server/engine/admission/admission.h"

namespace tilewire::engine {
namespace {
constexpr int64_t kOwnBytesRetryMs = 250;
}  // namespace

int Admission::MostInFlight(const Demand& demand) const {
  return demand.own.max_in_flight > 0 ? demand.own.max_in_flight : limits_.max_in_flight_per_identity;
}

bool Admission::HasOwnPlace(const Demand& demand) const {
  if ((demand.small ? small_ : bulk_).shares.Full(demand.owner)) return false;
  const auto own = own_in_flight_.find(demand.owner);
  return own == own_in_flight_.end() || own->second.most == 0 || own->second.count < own->second.most;
}

void Admission::HoldOrResume(const std::string& owner) {
  const auto own = own_in_flight_.find(owner);
  const bool all =
      own != own_in_flight_.end() && own->second.most > 0 && own->second.count >= own->second.most;
  for (Class* c : {&small_, &bulk_})
    all || c->shares.Full(owner) ? c->queue.Hold(owner) : c->queue.Resume(owner);
}

void Admission::HoldOrResume(const Shares::Changed& owners) {
  for (const std::string& owner : owners) HoldOrResume(owner);
}

bool Admission::Rebind(const Demand& demand) {
  const auto own = own_in_flight_.find(demand.owner);
  if (own == own_in_flight_.end() || own->second.most == MostInFlight(demand)) return false;
  own->second.most = MostInFlight(demand);
  HoldOrResume(demand.owner);
  return true;
}

void Admission::CountOwn(Demand* demand) {
  const int most = MostInFlight(*demand);
  if (most == 0 && !own_in_flight_.contains(demand->owner)) return;
  // What the owner's latest request said holds, not what this one did before it waited.
  InFlight& own = own_in_flight_.try_emplace(demand->owner, InFlight{.most = most}).first->second;
  ++own.count;
  demand->counted = true;
  HoldOrResume(demand->owner);
}

void Admission::UncountOwn(const Demand& demand) {
  if (!demand.counted) return;
  const auto own = own_in_flight_.find(demand.owner);
  --own->second.count;
  HoldOrResume(demand.owner);
  ForgetOwn(demand.owner);
}

void Admission::ForgetOwn(const std::string& owner) {
  const auto own = own_in_flight_.find(owner);
  if (own != own_in_flight_.end() && own->second.count == 0 && room_.Count(owner) == 0)
    own_in_flight_.erase(own);
}

Status Admission::TakeOwnBytes(Demand* demand) {
  const int64_t most = demand->own.device_bytes;
  const auto own = own_bytes_.find(demand->owner);
  if (demand->device_bytes == 0 || (most == 0 && own == own_bytes_.end())) return {};
  const int64_t held = own == own_bytes_.end() ? 0 : own->second;
  const std::string allowed = std::to_string(most) + SaidBy(true, "device_bytes", "");
  if (most > 0 && demand->device_bytes > most)
    return OverLimit("device bytes of yours", std::to_string(demand->device_bytes), "at most " + allowed)
        .value();
  if (most > 0 && demand->device_bytes > most - held)
    return Status({.code = Code::kResourceExhausted,
                   .reason = "BUSY",
                   .message = "your jobs and arrays take " + std::to_string(held) +
                              " bytes on the device and this one " + std::to_string(demand->device_bytes) +
                              "; allowed: " + allowed,
                   .field = "device bytes of yours",
                   .value = std::to_string(held + demand->device_bytes),
                   .allowed = allowed,
                   .retry_after_ms = kOwnBytesRetryMs});
  own_bytes_[demand->owner] += demand->device_bytes;
  demand->bytes_counted = true;
  return {};
}

void Admission::ReturnOwnBytes(const Demand& demand) {
  // Of none, because all stay as arrays (Ticket::Split), nothing is known any more once those are gone.
  if (!demand.bytes_counted || demand.device_bytes == 0) return;
  const auto own = own_bytes_.find(demand.owner);
  own->second -= demand.device_bytes;
  if (own->second == 0) own_bytes_.erase(own);
}

}  // namespace tilewire::engine
