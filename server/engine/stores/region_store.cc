#include "server/engine/stores/region_store.h"

#include "server/base/limits.h"
#include "server/base/memory.h"
#include "server/engine/stores/region_count.h"

namespace tilewire::engine {

RegionStore::RegionStore(std::string instance, const RegionLimits& limits, Device* device, Timer* timer)
    : OwnedStore(std::move(instance), CompleteLimits(limits, UsableMemoryBytes() / 2), timer, [] {}),
      device_(device) {}

Status RegionStore::EnterLocked(const RegionEntry& entry, const OwnQuota& own) {
  if (!closed_.ok()) return closed_;
  Entries none;                                                          // are evictable
  const int64_t most = entry.on_device() ? kMaxRegions : MostRegions();  // memory of a device takes no file
  TILEWIRE_RETURN_IF_ERROR(MakeRoomLocked(entry.identity, entry.quota_bytes, 1, held_, most, own, &none));
  if (entry.on_device()) {
    int64_t& there = on_device_[entry.identity];
    if (there >= kMaxDeviceRegionsPerIdentity)
      return Busy("you have " + std::to_string(there) +
                      " regions of device memory; allowed: " + std::to_string(kMaxDeviceRegionsPerIdentity),
                  kStoreRetryMs);
    ++there;
  }
  TakeLocked(entry);
  return {};
}

void RegionStore::Register(const std::string& identity, const RegionRequest& request,
                           OnRegistered on_registered, const OwnQuota& own) {
  Status status = CheckRequest(request, own);
  EntryPtr entry;
  if (status.ok()) {
    entry = std::make_shared<RegionEntry>(NewId(), request);
    entry->identity = identity;
    entry->keep = KeepFor(request.seconds);
    if (!entry->on_device())
      entry->quota_bytes = static_cast<int64_t>(SharedMemory::PageBytes(request.offset, request.bytes));
    MutexLock lock(mutex_);
    status = EnterLocked(*entry, own);
  }
  if (!status.ok()) return on_registered(Fail(std::move(status)));
  thread_.Post([this, entry = std::move(entry), on_registered = std::move(on_registered)] {
    Result<RegionFacts> facts = Admit(entry);
    if (!facts) CloseEntry(entry.get());
    on_registered(std::move(facts));
  });
}

Result<RegionFacts> RegionStore::Admit(const EntryPtr& entry) {
  TILEWIRE_RETURN_IF_ERROR(entry->Open(device_));
  MutexLock lock(mutex_);
  if (!closed_.ok()) return Fail(closed_);
  AddLocked(entry);
  return FactsLocked(*entry);
}

void RegionStore::CloseEntry(RegionEntry* entry) {
  entry->Close();
  MutexLock lock(mutex_);
  ReturnLocked(*entry);
  if (entry->on_device() && --on_device_[entry->identity] == 0) on_device_.erase(entry->identity);
}

void RegionStore::ReleaseLocked(EntryPtr entry, Entries*) {
  thread_.Post([this, entry = std::move(entry)] {
    CloseEntry(entry.get());
    if (entry->on_closed) entry->on_closed(Status());
  });
}

Status RegionStore::Unregister(const std::string& id, const std::string& identity) {
  Entries none;
  MutexLock lock(mutex_);
  TILEWIRE_ASSIGN_OR_RETURN(RegionEntry* const entry, FindLocked(id, identity, "region"));
  ForgetLocked(entry, &none);
  return {};
}

void RegionStore::Unregister(const std::string& id, const std::string& identity,
                             std::function<void(Status)> on_unregistered) {
  Status status;
  {
    Entries none;
    MutexLock lock(mutex_);
    if (const auto entry = FindLocked(id, identity, "region"); !entry) {
      status = entry.error();
    } else {
      if ((*entry)->on_device()) (*entry)->on_closed = std::exchange(on_unregistered, nullptr);
      ForgetLocked(*entry, &none);
    }
  }
  if (on_unregistered) on_unregistered(std::move(status));
}

void RegionStore::Snapshot(EngineStats* stats) const {
  MutexLock lock(mutex_);
  stats->regions = static_cast<uint32_t>(entries_.size());
  stats->region_bytes = static_cast<uint64_t>(bytes_);
  stats->region_bytes_most = limits_.prefix.empty() ? 0 : static_cast<uint64_t>(limits_.bytes);
  stats->regions_expired = expired_;
}

}  // namespace tilewire::engine
