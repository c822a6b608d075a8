// Room for arrays: quotas, and who has to go when they are full.
#include "server/base/limits.h"
#include "server/engine/device/memory_pool.h"
#include "server/engine/stores/array_store.h"
#include "server/engine/stores/random_id.h"

namespace tilewire::engine {
namespace {
constexpr int64_t kRetryAfterMs = 1000;

int64_t DeviceBytes(const ArraySpec& spec) {
  return static_cast<int64_t>(MemoryPool::RoundUp(static_cast<size_t>(spec.bytes())));
}
}  // namespace

int64_t ResidentArray::device_bytes() const {
  return DeviceBytes(spec_);
}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    Drop();
    store_ = std::exchange(other.store_, nullptr);
    identity_ = std::move(other.identity_);
    spec_ = other.spec_;
    options_ = std::move(other.options_);
    bytes_ = other.bytes_;
    existing_ = std::move(other.existing_);
  }
  return *this;
}

void Reservation::Drop() {
  ArrayStore* const store = std::exchange(store_, nullptr);
  if (!store) return;
  MutexLock lock(store->mutex_);
  store->reserved_ -= bytes_;
  --store->pending_;
  store->ReturnBytesLocked(identity_, bytes_);
}

Result<std::string> Reservation::Commit(Memory memory, Ticket ticket) {
  ArrayStore* const store = store_;
  auto entry = std::make_shared<ArrayStore::Entry>(store->instance_ + "-" + RandomHex(), spec_,
                                                   std::move(memory), std::move(ticket));
  {
    MutexLock lock(store->mutex_);
    if (!store->closed_.ok()) return Fail(store->closed_);
    TILEWIRE_ASSIGN_OR_RETURN(const auto* keyed, store->KeyedLocked(identity_, options_.key, spec_));
    if (keyed) return keyed->id();
    store_ = nullptr;  // the bytes are the array's from now on
    store->reserved_ -= bytes_;
    --store->pending_;
    entry->number = ++store->last_number_;
    entry->identity = identity_;
    entry->options = options_;
    entry->stored = entry->last_used = store->timer_->Now();
    entry->expires = entry->stored + std::chrono::duration_cast<Clock::duration>(
                                         std::chrono::duration<double>(options_.seconds));
    entry->timer =
        store->timer_->At(entry->expires, [store, number = entry->number] { store->Expire(number); });
    ArrayStore::Owner& owner = store->owners_[identity_];
    owner.arrays.emplace(entry->number, entry);
    if (!options_.key.empty()) owner.keys[options_.key] = entry->number;
    store->arrays_.emplace(entry->number, entry.get());
    store->by_id_.emplace(entry->id(), entry.get());
    if (options_.evictable) store->idle_.emplace(std::pair(entry->last_used, entry->number), entry.get());
  }
  if (options_.evictable) store->on_idle_();
  return entry->id();
}

Result<ArrayStore::Entry*> ArrayStore::KeyedLocked(const std::string& identity, const std::string& key,
                                                   const ArraySpec& spec) {
  const auto owner = owners_.find(identity);
  if (key.empty() || owner == owners_.end()) return nullptr;
  const auto found = owner->second.keys.find(key);
  if (found == owner->second.keys.end()) return nullptr;
  Entry* const entry = arrays_.at(found->second);
  if (entry->expires <= timer_->Now()) {
    owner->second.keys.erase(found);  // the key is free; the array goes with its timer
    entry->options.key.clear();
    return nullptr;
  }
  if (entry->spec() == spec) return entry;
  return BadValue(
      "options.store.idempotency_key",
      key + " for an array of dtype " + std::string(Name(spec.dtype)) + " and shape " + spec.shape.ToString(),
      "dtype " + std::string(Name(entry->spec().dtype)) + " and shape " + entry->spec().shape.ToString() +
          ", as the array that was stored with it");
}

Result<Reservation> ArrayStore::Reserve(const std::string& identity, const ArraySpec& spec,
                                        const StoreOptions& options) {
  constexpr double kShortest = 0.001;
  if (options.seconds != 0 && !(options.seconds >= kShortest && options.seconds <= limits_.longest_seconds))
    return BadValue("options.store.ttl_seconds", std::to_string(options.seconds),
                    "0.001 to " + std::to_string(limits_.longest_seconds) + " (--longest-store-seconds)");
  const int64_t bytes = DeviceBytes(spec);
  Reservation reservation;
  Entries freed;  // dropped once the lock is gone
  MutexLock lock(mutex_);
  if (!closed_.ok()) return Fail(closed_);
  TILEWIRE_ASSIGN_OR_RETURN(Entry* const keyed, KeyedLocked(identity, options.key, spec));
  if (keyed) {
    reservation.existing_ = UseLocked(keyed);
    return reservation;
  }
  if (bytes > limits_.bytes)
    return OverLimit("device bytes of the array", std::to_string(bytes),
                     "at most " + std::to_string(limits_.bytes) + " (--store-bytes)");
  if (bytes > limits_.bytes_per_identity)
    return OverLimit(
        "device bytes of the array", std::to_string(bytes),
        "at most " + std::to_string(limits_.bytes_per_identity) + " (--store-bytes-per-identity)");
  TILEWIRE_RETURN_IF_ERROR(MakeRoomLocked(identity, bytes, &freed));
  reservation.store_ = this;
  reservation.identity_ = identity;
  reservation.spec_ = spec;
  reservation.options_ = options;
  if (options.seconds == 0) reservation.options_.seconds = limits_.seconds;
  reservation.bytes_ = bytes;
  bytes_ += bytes;
  reserved_ += bytes;
  ++pending_;
  owners_[identity].bytes += bytes;
  return reservation;
}

Status ArrayStore::MakeRoomLocked(const std::string& identity, int64_t bytes, Entries* freed) {
  const auto owner = owners_.find(identity);
  const int64_t owned = owner == owners_.end() ? 0 : owner->second.bytes;
  // What is over each limit; of all arrays also their number, since what is kept of each has no other bound.
  int64_t own_over = owned + bytes - limits_.bytes_per_identity, over = bytes_ + bytes - limits_.bytes;
  auto arrays_over = static_cast<int64_t>(arrays_.size() + pending_ + 1) - kMaxArrays;
  if (own_over <= 0 && over <= 0 && arrays_over <= 0) return {};
  int64_t own_idle = 0, idle = 0;
  for (const auto& [when, entry] : idle_) {
    idle += entry->device_bytes();
    if (entry->identity == identity) own_idle += entry->device_bytes();
  }
  if (own_over > own_idle)
    return Busy("your arrays take " + std::to_string(owned) + " bytes and this one " + std::to_string(bytes) +
                    "; allowed: " + std::to_string(limits_.bytes_per_identity) +
                    " (--store-bytes-per-identity)",
                kRetryAfterMs);
  if (over > idle)
    return Busy("all arrays take " + std::to_string(bytes_) + " bytes and this one " + std::to_string(bytes) +
                    "; allowed: " + std::to_string(limits_.bytes) + " (--store-bytes)",
                kRetryAfterMs);
  if (arrays_over > static_cast<int64_t>(idle_.size()))
    return Busy(std::to_string(arrays_.size() + pending_) +
                    " arrays are stored; allowed: " + std::to_string(kMaxArrays),
                kRetryAfterMs);
  for (const bool own : {true, false}) {
    for (auto next = idle_.begin(); next != idle_.end();) {
      Entry* const entry = (next++)->second;
      if (own ? own_over <= 0 : over <= 0 && arrays_over <= 0) break;
      if (own && entry->identity != identity) continue;
      if (entry->identity == identity) own_over -= entry->device_bytes();
      over -= entry->device_bytes();
      --arrays_over;
      ++evicted_;
      ForgetLocked(entry, freed);
    }
  }
  return {};
}

bool ArrayStore::Reclaim(int64_t bytes) {
  Entries freed;
  {
    MutexLock lock(mutex_);
    while (bytes > 0 && !idle_.empty()) {
      Entry* const entry = idle_.begin()->second;
      bytes -= entry->device_bytes();
      ++evicted_;
      ForgetLocked(entry, &freed);
    }
  }
  return !freed.empty();
}

}  // namespace tilewire::engine
