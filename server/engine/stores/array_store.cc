#include "server/engine/stores/array_store.h"

#include "server/base/limits.h"
#include "server/engine/device/memory_pool.h"

namespace tilewire::engine {

int64_t ResidentArray::device_bytes() const {
  return static_cast<int64_t>(MemoryPool::RoundUp(static_cast<size_t>(spec_.bytes())));
}

// --- room for an array --------------------------------------------------------------------------------

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    Drop();
    store_ = other.store_;
    entry_ = std::move(other.entry_);
    existing_ = std::move(other.existing_);
  }
  return *this;
}

void Reservation::Drop() {
  if (const auto entry = std::exchange(entry_, nullptr)) store_->GiveUp(*entry);
}

Result<std::string> Reservation::Commit(Memory memory, Ticket ticket) {
  return store_->Commit(&entry_, std::move(memory), std::move(ticket));
}

Result<Reservation> ArrayStore::Reserve(const std::string& identity, const ArraySpec& spec,
                                        const StoreOptions& options) {
  TILEWIRE_RETURN_IF_ERROR(CheckSeconds(ArrayEntry::kWords, options.seconds, limits_.longest_seconds,
                                        "options.store.ttl_seconds"));
  auto entry = std::make_shared<ArrayEntry>(NewId(), spec);
  entry->identity = identity;
  entry->quota_bytes = entry->device_bytes();
  entry->keep = KeepFor(options.seconds);
  entry->evictable = options.evictable;
  entry->key = options.key;
  const auto bytes = static_cast<uint64_t>(entry->quota_bytes);
  Reservation reservation;
  Entries freed;
  MutexLock lock(mutex_);
  if (!closed_.ok()) return Fail(closed_);
  TILEWIRE_ASSIGN_OR_RETURN(ArrayEntry* const keyed, KeyedLocked(identity, options.key, spec));
  if (keyed) {
    reservation.existing_ = UseLocked(keyed);
    return reservation;
  }
  TILEWIRE_RETURN_IF_ERROR(CheckQuotas(ArrayEntry::kWords, bytes, limits_.bytes, limits_.bytes_per_identity,
                                       "device bytes of the array", bytes));
  TILEWIRE_RETURN_IF_ERROR(MakeRoomLocked(*entry, entries_.size() + pending_, kMaxArrays, &freed));
  TakeLocked(*entry);
  ++pending_;
  reserved_ += entry->quota_bytes;
  reservation.store_ = this;
  reservation.entry_ = std::move(entry);
  return reservation;
}

void ArrayStore::GiveUp(const ArrayEntry& entry) {
  MutexLock lock(mutex_);
  --pending_;
  reserved_ -= entry.quota_bytes;
  ReturnLocked(entry);
}

Result<std::string> ArrayStore::Commit(EntryPtr* room, Memory memory, Ticket ticket) {
  EntryPtr entry;
  {
    MutexLock lock(mutex_);
    if (!closed_.ok()) return Fail(closed_);
    TILEWIRE_ASSIGN_OR_RETURN(const ArrayEntry* const keyed,
                              KeyedLocked((*room)->identity, (*room)->key, (*room)->spec()));
    if (keyed) return keyed->id();
    entry = std::move(*room);
    --pending_;
    reserved_ -= entry->quota_bytes;
    entry->Fill(std::move(memory), std::move(ticket));
    AddLocked(entry);
    if (!entry->key.empty()) keys_[{entry->identity, entry->key}] = entry.get();
  }
  if (entry->evictable) on_idle_();
  return entry->id();
}

Result<ArrayEntry*> ArrayStore::KeyedLocked(const std::string& identity, const std::string& key,
                                            const ArraySpec& spec) {
  const auto found = key.empty() ? keys_.end() : keys_.find({identity, key});
  if (found == keys_.end()) return nullptr;
  ArrayEntry* const entry = found->second;
  if (ExpiredLocked(*entry, timer_->Now())) {
    keys_.erase(found);  // the key is free; the array goes with its timer
    entry->key.clear();
    return nullptr;
  }
  if (entry->spec() == spec) return entry;
  return BadValue(
      "options.store.idempotency_key",
      key + " for an array of dtype " + std::string(Name(spec.dtype)) + " and shape " + spec.shape.ToString(),
      "dtype " + std::string(Name(entry->spec().dtype)) + " and shape " + entry->spec().shape.ToString() +
          ", as the array that was stored with it");
}

// --- arrays -------------------------------------------------------------------------------------------

void ArrayStore::ForgottenLocked(const ArrayEntry& entry) {
  if (!entry.key.empty()) keys_.erase({entry.identity, entry.key});
}

void ArrayStore::ReleaseLocked(EntryPtr entry, Entries* freed) {
  ReturnLocked(*entry);
  freed->push_back(std::move(entry));
}

Result<ArrayFacts> ArrayStore::Stat(const std::string& id, const std::string& identity) {
  MutexLock lock(mutex_);
  TILEWIRE_ASSIGN_OR_RETURN(const ArrayEntry* const entry, FindLocked(id, identity, "array"));
  return FactsLocked(*entry);
}

Status ArrayStore::Delete(const std::string& id, const std::string& identity) {
  Entries freed;
  MutexLock lock(mutex_);
  TILEWIRE_ASSIGN_OR_RETURN(ArrayEntry* const entry, FindLocked(id, identity, "array"));
  ForgetLocked(entry, &freed);
  return {};
}

bool ArrayStore::Reclaim(int64_t bytes) {
  Entries freed;
  MutexLock lock(mutex_);
  while (bytes > 0 && !idle_.empty()) {
    ArrayEntry* const entry = idle_.begin()->second;
    bytes -= entry->quota_bytes;
    EvictLocked(entry, &freed);
  }
  return !freed.empty();
}

void ArrayStore::Snapshot(EngineStats* stats) const {
  MutexLock lock(mutex_);
  stats->arrays_stored = static_cast<uint32_t>(entries_.size());
  stats->array_bytes = static_cast<uint64_t>(bytes_ - reserved_);
  stats->array_bytes_most = static_cast<uint64_t>(limits_.bytes);
  stats->arrays_evicted = evicted_;
  stats->arrays_expired = expired_;
}

}  // namespace tilewire::engine
