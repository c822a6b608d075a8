// The right to run, and what is told of those who have it.
#include <utility>

#include "server/engine/admission/admission.h"

namespace tilewire::engine {

Ticket& Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    if (admission_) admission_->Release(demand_);
    admission_ = std::exchange(other.admission_, nullptr);
    demand_ = std::move(other.demand_);
  }
  return *this;
}

Ticket::~Ticket() {
  if (admission_) admission_->Release(demand_);
}

Ticket Ticket::Split(int64_t device_bytes) {
  if (!admission_) return {};
  demand_.device_bytes -= device_bytes;
  return Ticket(admission_, {.small = demand_.small,
                             .device_bytes = device_bytes,
                             .resident = true,
                             .bytes_counted = demand_.bytes_counted,
                             .owner = demand_.owner});
}

void Admission::Snapshot(EngineStats* stats) const {
  MutexLock lock(mutex_);
  stats->device_bytes = limits_.device_bytes;
  stats->pinned_bytes = limits_.pinned_bytes;
  stats->device_bytes_in_use = limits_.device_bytes - small_.device_bytes - bulk_.device_bytes;
  stats->pinned_bytes_in_use = limits_.pinned_bytes - small_.pinned_bytes - bulk_.pinned_bytes;
  stats->jobs_in_flight = in_flight_;
  stats->jobs_queued = static_cast<uint32_t>(waiting_.size());
  stats->jobs_open = static_cast<uint32_t>(open_.size());
  stats->jobs_admitted = admitted_;
  stats->jobs_refused_busy = refused_busy_;
  stats->jobs_refused_limit = refused_limit_;
}

}  // namespace tilewire::engine
