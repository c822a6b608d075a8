#include "tests/devices/faults.h"

#include <string>
#include <utility>

namespace tilewire::engine {
namespace {

constexpr int64_t kRetryAfterMs = 10;

}  // namespace

void Faults::FailNth(Submitted kind, int64_t nth, Status status, bool device_fails) {
  MutexLock lock(mutex_);
  const auto index = static_cast<size_t>(kind);
  armed_[index] = Armed{counts_[index] + nth, {std::move(status), device_fails}};
}

void Faults::Clear() {
  MutexLock lock(mutex_);
  armed_.fill(std::nullopt);
}

int64_t Faults::count(Submitted kind) const {
  MutexLock lock(mutex_);
  return counts_[static_cast<size_t>(kind)];
}

Status Faults::health() const {
  MutexLock lock(mutex_);
  return health_;
}

std::optional<Faults::Fault> Faults::Count(Submitted kind) {
  MutexLock lock(mutex_);
  const auto index = static_cast<size_t>(kind);
  const int64_t number = ++counts_[index];
  auto& armed = armed_[index];
  if (!armed || armed->at != number) return std::nullopt;
  Fault fault = armed->fault;
  armed.reset();
  return fault;
}

void Faults::FailDevice(const Status& status) {
  MutexLock lock(mutex_);
  if (health_.ok()) health_ = status;
}

void Shortage::FailNthDevice(int64_t nth) {
  MutexLock lock(mutex_);
  device_in_ = nth;
}

void Shortage::FailNthPinned(int64_t nth) {
  MutexLock lock(mutex_);
  pinned_in_ = nth;
}

void Shortage::CapDevice(int64_t bytes) {
  MutexLock lock(mutex_);
  device_cap_ = bytes;
}

int64_t Shortage::leased_device_bytes() const {
  MutexLock lock(mutex_);
  return leased_;
}

int64_t Shortage::refused() const {
  MutexLock lock(mutex_);
  return refused_;
}

Status Shortage::TakeDevice(int64_t bytes) {
  MutexLock lock(mutex_);
  const bool nth = device_in_ > 0 && --device_in_ == 0;
  if (nth || (device_cap_ >= 0 && bytes > device_cap_ - leased_)) {
    ++refused_;
    return Busy("out of device memory: " + std::to_string(bytes) + " bytes wanted", kRetryAfterMs);
  }
  leased_ += bytes;
  return {};
}

void Shortage::GiveDevice(int64_t bytes) {
  MutexLock lock(mutex_);
  leased_ -= bytes;
}

Status Shortage::TakePinned() {
  MutexLock lock(mutex_);
  if (pinned_in_ == 0 || --pinned_in_ > 0) return {};
  ++refused_;
  return Busy("out of pinned memory", kRetryAfterMs);
}

}  // namespace tilewire::engine
