#include "server/engine/stores/array_store.h"

namespace tilewire::engine {
namespace {

constexpr size_t kLongestId = 64;  // ours have 33 characters; what is echoed must stay short

double Seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

Status NotFound(const std::string& id, const std::string& field, bool foreign) {
  return Status({.code = Code::kNotFound,
                 .reason = foreign ? "WRONG_INSTANCE" : "ARRAY",
                 .message = foreign ? field + ": array " + id + " is not of this server"
                                    : field + ": you have no array " + id + " here",
                 .field = field,
                 .value = id,
                 .allowed = "the id of an array that is stored, yours, and not expired"});
}

}  // namespace

// --- store ------------------------------------------------------------------------------------------

ArrayStore::ArrayStore(std::string instance, const StoreLimits& limits, Timer* timer,
                       std::function<void()> on_idle)
    : instance_(std::move(instance)), limits_(limits), timer_(timer), on_idle_(std::move(on_idle)) {}

void ArrayStore::ForgetLocked(Entry* entry, Entries* freed) {
  const auto owner = owners_.find(entry->identity);
  const auto mine = owner->second.arrays.find(entry->number);
  const std::shared_ptr<Entry> kept = std::move(mine->second);
  owner->second.arrays.erase(mine);
  if (!entry->options.key.empty()) owner->second.keys.erase(entry->options.key);
  arrays_.erase(entry->number);
  by_id_.erase(entry->id());
  idle_.erase({entry->last_used, entry->number});
  timer_->Cancel(entry->timer);
  entry->forgotten = true;
  if (entry->users > 0) return;  // its uses keep it
  ReturnBytesLocked(entry->identity, entry->device_bytes());
  freed->push_back(kept);
}

void ArrayStore::ReturnBytesLocked(const std::string& identity, int64_t bytes) {
  bytes_ -= bytes;
  const auto owner = owners_.find(identity);
  owner->second.bytes -= bytes;
  if (owner->second.bytes == 0) owners_.erase(owner);
}

Result<ArrayStore::Entry*> ArrayStore::FindLocked(const std::string& id, const std::string& identity,
                                                  const std::string& field) {
  if (id.size() > kLongestId)
    return BadValue(field, std::to_string(id.size()) + " characters", "an id as in ArrayResult.array");
  if (!id.starts_with(instance_ + "-")) return Fail(NotFound(id, field, true));
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->identity != identity ||
      found->second->expires <= timer_->Now())  // its timer is on its way
    return Fail(NotFound(id, field, false));
  return found->second;
}

Result<ArrayUse> ArrayStore::Use(const std::string& id, const std::string& identity,
                                 const std::string& field) {
  MutexLock lock(mutex_);
  TILEWIRE_ASSIGN_OR_RETURN(Entry* const entry, FindLocked(id, identity, field));
  return UseLocked(entry);
}

ArrayUse ArrayStore::UseLocked(Entry* entry) {
  if (entry->users++ == 0) idle_.erase({entry->last_used, entry->number});
  return ArrayUse(entry, [this, kept = entry->shared_from_this()](const ResidentArray*) { Unuse(kept); });
}

void ArrayStore::Unuse(const std::shared_ptr<Entry>& entry) {
  bool idle = false;
  {
    MutexLock lock(mutex_);
    entry->last_used = entry->users == 1 ? timer_->Now() : entry->last_used;
    if (--entry->users > 0) return;
    if (entry->forgotten) {
      ReturnBytesLocked(entry->identity, entry->device_bytes());
    } else if (entry->options.evictable) {
      idle = true;
      idle_.emplace(std::pair(entry->last_used, entry->number), entry.get());
    }
  }
  if (idle) on_idle_();
}

Result<ArrayFacts> ArrayStore::Stat(const std::string& id, const std::string& identity) {
  MutexLock lock(mutex_);
  TILEWIRE_ASSIGN_OR_RETURN(const Entry* const entry, FindLocked(id, identity, "array"));
  return FactsLocked(*entry);
}

ArrayFacts ArrayStore::FactsLocked(const Entry& entry) const {
  const TimePoint now = timer_->Now();
  return {.id = entry.id(),
          .spec = entry.spec(),
          .device_bytes = entry.device_bytes(),
          .evictable = entry.options.evictable,
          .age_seconds = Seconds(now - entry.stored),
          .expires_seconds = Seconds(entry.expires - now),
          .idle_seconds = entry.users > 0 ? 0 : Seconds(now - entry.last_used),
          .users = entry.users};
}

ArrayPage ArrayStore::List(const std::string& identity, uint64_t from, size_t count) {
  ArrayPage page{.quota_bytes = limits_.bytes_per_identity};
  MutexLock lock(mutex_);
  const auto owner = owners_.find(identity);
  if (owner == owners_.end()) return page;
  page.stored_bytes = owner->second.bytes;
  const TimePoint now = timer_->Now();
  for (auto next = owner->second.arrays.lower_bound(from); next != owner->second.arrays.end(); ++next) {
    if (next->second->expires <= now) continue;
    if (page.arrays.size() == count) {
      page.next = next->first;
      break;
    }
    page.arrays.push_back(FactsLocked(*next->second));
  }
  return page;
}

Status ArrayStore::Delete(const std::string& id, const std::string& identity) {
  Entries freed;
  MutexLock lock(mutex_);
  TILEWIRE_ASSIGN_OR_RETURN(Entry* const entry, FindLocked(id, identity, "array"));
  ForgetLocked(entry, &freed);
  return {};
}

void ArrayStore::Expire(uint64_t number) {
  Entries freed;
  MutexLock lock(mutex_);
  const auto found = arrays_.find(number);
  if (found == arrays_.end()) return;
  ++expired_;
  ForgetLocked(found->second, &freed);
}

void ArrayStore::Close(const Status& why) {
  Entries freed;
  MutexLock lock(mutex_);
  if (closed_.ok()) closed_ = why;
  while (!arrays_.empty()) ForgetLocked(arrays_.begin()->second, &freed);
}

void ArrayStore::Snapshot(EngineStats* stats) const {
  MutexLock lock(mutex_);
  stats->arrays_stored = static_cast<uint32_t>(arrays_.size());
  stats->array_bytes = static_cast<uint64_t>(bytes_ - reserved_);
  stats->array_bytes_most = static_cast<uint64_t>(limits_.bytes);
  stats->arrays_evicted = evicted_;
  stats->arrays_expired = expired_;
}

}  // namespace tilewire::engine
