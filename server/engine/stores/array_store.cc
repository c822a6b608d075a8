#include "server/engine/stores/array_store.h"

#include <algorithm>
#include <utility>

#include "server/base/limits.h"
#include "server/engine/device/memory_pool.h"

namespace tilewire::engine {
namespace {

/// No key of a caller has it.
constexpr char kKeyEnd = '\n';

/// A job's results under one key: the first has the key itself.
std::string KeyOf(const std::string& key, size_t result) {
  return key.empty() || result == 0 ? key : key + kKeyEnd + std::to_string(result);
}

}  // namespace

int64_t ResidentArray::device_bytes() const {
  return static_cast<int64_t>(MemoryPool::RoundUp(static_cast<size_t>(spec_.bytes())));
}

// --- room for an array --------------------------------------------------------------------------------

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    Drop();
    store_ = other.store_;
    entries_ = std::exchange(other.entries_, {});
    existing_ = std::exchange(other.existing_, {});
  }
  return *this;
}

void Reservation::Drop() {
  for (const auto& entry : std::exchange(entries_, {}))
    if (entry) store_->GiveUp(*entry);
}

std::vector<int64_t> Reservation::device_bytes() const {
  std::vector<int64_t> bytes;
  for (const auto& entry : entries_) bytes.push_back(entry->device_bytes());
  return bytes;
}

Result<std::vector<std::string>> Reservation::Commit(std::vector<ArrayParts> parts) {
  return store_->Commit(&entries_, std::move(parts));
}

Result<Reservation> ArrayStore::Reserve(const std::string& identity, std::span<const ArraySpec> specs,
                                        const StoreOptions& options, const OwnQuota& own) {
  TILEWIRE_RETURN_IF_ERROR(CheckSeconds(ArrayEntry::kWords, options.seconds, limits_.longest_seconds,
                                        "options.store.ttl_seconds"));
  Entries entries;
  int64_t bytes = 0;
  for (const ArraySpec& spec : specs) {
    const EntryPtr& entry = entries.emplace_back(std::make_shared<ArrayEntry>(NewId(), spec));
    entry->identity = identity;
    entry->quota_bytes = entry->device_bytes();
    entry->keep = KeepFor(options.seconds);
    entry->evictable = options.evictable;
    entry->key = KeyOf(options.key, entries.size() - 1);
    bytes += entry->quota_bytes;
  }
  Reservation reservation;
  Entries freed;
  MutexLock lock(mutex_);
  if (!closed_.ok()) return Fail(closed_);
  TILEWIRE_ASSIGN_OR_RETURN(const std::vector<ArrayEntry*> keyed, KeyedLocked(entries));
  if (std::find(keyed.begin(), keyed.end(), nullptr) == keyed.end()) {
    for (ArrayEntry* const entry : keyed) reservation.existing_.push_back(UseLocked(entry));
    return reservation;
  }
  TILEWIRE_RETURN_IF_ERROR(
      CheckQuotas(ArrayEntry::kWords, static_cast<uint64_t>(bytes), limits_.bytes, OwnBytes(own),
                  specs.size() == 1 ? "device bytes of the array" : "device bytes of the arrays",
                  static_cast<uint64_t>(bytes)));
  TILEWIRE_RETURN_IF_ERROR(
      MakeRoomLocked(identity, bytes, entries.size(), entries_.size() + pending_, kMaxArrays, own, &freed));
  for (const EntryPtr& entry : entries) TakeLocked(*entry);
  pending_ += entries.size();
  reserved_ += bytes;
  reservation.store_ = this;
  reservation.entries_ = std::move(entries);
  return reservation;
}

void ArrayStore::GiveUp(const ArrayEntry& entry) {
  MutexLock lock(mutex_);
  --pending_;
  reserved_ -= entry.quota_bytes;
  ReturnLocked(entry);
}

Result<std::vector<std::string>> ArrayStore::Commit(Entries* room, std::vector<ArrayParts> parts) {
  std::vector<std::string> ids;
  bool evictable = false;
  {
    MutexLock lock(mutex_);
    if (!closed_.ok()) return Fail(closed_);
    TILEWIRE_ASSIGN_OR_RETURN(const std::vector<ArrayEntry*> keyed, KeyedLocked(*room));
    for (size_t i = 0; i < room->size(); ++i) {
      ids.push_back((keyed[i] ? keyed[i] : (*room)[i].get())->id());
      if (keyed[i]) continue;
      const EntryPtr entry = std::move((*room)[i]);
      --pending_;
      reserved_ -= entry->quota_bytes;
      entry->Fill(std::move(parts[i].memory), std::move(parts[i].ticket));
      AddLocked(entry);
      if (!entry->key.empty()) keys_[{entry->identity, entry->key}] = entry.get();
      evictable = evictable || entry->evictable;
    }
  }
  if (evictable) on_idle_();
  return ids;
}

Result<std::vector<ArrayEntry*>> ArrayStore::KeyedLocked(const Entries& entries) {
  std::vector<ArrayEntry*> keyed;
  for (const EntryPtr& entry : entries) {
    TILEWIRE_ASSIGN_OR_RETURN(keyed.emplace_back(), KeyedLocked(entry->identity, entry->key, entry->spec()));
  }
  return keyed;
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
  return BadValue("options.store.idempotency_key",
                  key.substr(0, key.find(kKeyEnd)) + " for an array of dtype " +
                      std::string(Name(spec.dtype)) + " and shape " + spec.shape.ToString(),
                  "dtype " + std::string(Name(entry->spec().dtype)) + " and shape " +
                      entry->spec().shape.ToString() + ", as the array that was stored with it");
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
