#include "server/engine/stores/region_store.h"

#include <algorithm>

#include "server/base/limits.h"
#include "server/base/memory.h"
#include "server/engine/stores/random_id.h"

namespace tilewire::engine {
namespace {

constexpr size_t kLongestId = 64;  // ours have 33 characters; what is echoed must stay short
constexpr int64_t kRetryAfterMs = 1000;

double Seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

RegionLimits WithDefaults(RegionLimits limits) {
  if (limits.bytes <= 0) limits.bytes = UsableMemoryBytes() / 2;
  if (limits.bytes_per_identity <= 0) limits.bytes_per_identity = limits.bytes;
  limits.longest_seconds = std::max(limits.longest_seconds, limits.seconds);
  return limits;
}

Status NotFound(const std::string& id, const std::string& field, bool foreign) {
  return Status({.code = Code::kNotFound,
                 .reason = foreign ? "WRONG_INSTANCE" : "REGION",
                 .message = foreign ? field + ": region " + id + " is not of this server"
                                    : field + ": you have no region " + id + " here",
                 .field = field,
                 .value = id,
                 .allowed = "the id of a region that is registered, yours, and not expired"});
}

}  // namespace

// --- registering --------------------------------------------------------------------------------------

RegionStore::RegionStore(std::string instance, const RegionLimits& limits, Device* device, Timer* timer)
    : instance_(std::move(instance)),
      limits_(WithDefaults(limits)),
      device_(device),
      timer_(timer),
      thread_("tw-regions") {}

Status RegionStore::TakeLocked(const Entry& entry) {
  const int64_t bytes = entry.quota_bytes;
  const auto known = owners_.find(entry.identity);
  const Owner none;
  const Owner& owned = known == owners_.end() ? none : known->second;
  if (bytes > 0 && owned.bytes + bytes > limits_.bytes_per_identity)
    return Busy("your regions take " + std::to_string(owned.bytes) + " bytes and this one " +
                    std::to_string(bytes) + "; allowed: " + std::to_string(limits_.bytes_per_identity) +
                    " (--region-bytes-per-identity)",
                kRetryAfterMs);
  if (bytes > 0 && bytes_ + bytes > limits_.bytes)
    return Busy("all regions take " + std::to_string(bytes_) + " bytes and this one " +
                    std::to_string(bytes) + "; allowed: " + std::to_string(limits_.bytes) +
                    " (--region-bytes)",
                kRetryAfterMs);
  if (held_ >= kMaxRegions)
    return Busy(std::to_string(held_) + " regions are registered; allowed: " + std::to_string(kMaxRegions),
                kRetryAfterMs);
  if (entry.on_device() && owned.held_on_device >= kMaxDeviceRegionsPerIdentity)
    return Busy("you have " + std::to_string(owned.held_on_device) +
                    " regions of device memory; allowed: " + std::to_string(kMaxDeviceRegionsPerIdentity),
                kRetryAfterMs);
  Owner& owner = owners_[entry.identity];
  owner.bytes += bytes;
  ++owner.held;
  owner.held_on_device += entry.on_device() ? 1 : 0;
  bytes_ += bytes;
  ++held_;
  return {};
}

void RegionStore::ReturnLocked(const Entry& entry) {
  bytes_ -= entry.quota_bytes;
  --held_;
  const auto owner = owners_.find(entry.identity);
  owner->second.bytes -= entry.quota_bytes;
  owner->second.held_on_device -= entry.on_device() ? 1 : 0;
  if (--owner->second.held == 0) owners_.erase(owner);
}

void RegionStore::Register(const std::string& identity, const RegionRequest& request,
                           OnRegistered on_registered) {
  Status status = CheckRequest(request);
  EntryPtr entry;
  if (status.ok()) {
    entry = std::make_shared<Entry>(instance_ + "-" + RandomHex(), request, identity);
    if (!entry->on_device())
      entry->quota_bytes = static_cast<int64_t>(SharedMemory::PageBytes(request.offset, request.bytes));
    entry->keep = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(request.seconds == 0 ? limits_.seconds : request.seconds));
    MutexLock lock(mutex_);
    status = closed_.ok() ? TakeLocked(*entry) : closed_;
  }
  if (!status.ok()) return on_registered(Fail(std::move(status)));
  thread_.Post([this, entry = std::move(entry), on_registered = std::move(on_registered)] {
    Result<RegionFacts> facts = Admit(entry);
    if (!facts) {
      entry->Close();
      MutexLock lock(mutex_);
      ReturnLocked(*entry);
    }
    on_registered(std::move(facts));
  });
}

Result<RegionFacts> RegionStore::Admit(const EntryPtr& entry) {
  TILEWIRE_RETURN_IF_ERROR(entry->Open(device_));
  MutexLock lock(mutex_);
  if (!closed_.ok()) return Fail(closed_);
  entry->number = ++last_number_;
  entry->registered = entry->last_used = timer_->Now();
  entry->timer =
      timer_->At(entry->last_used + entry->keep, [this, number = entry->number] { Expire(number); });
  owners_[entry->identity].regions.emplace(entry->number, entry);
  regions_.emplace(entry->number, entry.get());
  by_id_.emplace(entry->id(), entry.get());
  return FactsOf(*entry);
}

// --- using --------------------------------------------------------------------------------------------

Result<RegionStore::Entry*> RegionStore::FindLocked(const std::string& id, const std::string& identity,
                                                    const std::string& field) {
  if (id.size() > kLongestId)
    return BadValue(field, std::to_string(id.size()) + " characters", "an id as in RegionInfo.region");
  if (!id.starts_with(instance_ + "-")) return Fail(NotFound(id, field, true));
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->identity != identity ||
      Expired(*found->second, timer_->Now()))  // its timer is on its way
    return Fail(NotFound(id, field, false));
  return found->second;
}

Result<RegionUse> RegionStore::Use(const std::string& id, const std::string& identity,
                                   const std::string& field) {
  RegionUse use;
  {
    MutexLock lock(mutex_);
    TILEWIRE_ASSIGN_OR_RETURN(Entry* const entry, FindLocked(id, identity, field));
    ++entry->users;
    use = RegionUse(entry, [this, kept = entry->shared_from_this()](const Region*) { Unuse(kept); });
  }
  TILEWIRE_RETURN_IF_ERROR(use->Check());
  return use;
}

void RegionStore::Unuse(const EntryPtr& entry) {
  {
    MutexLock lock(mutex_);
    entry->last_used = timer_->Now();
    if (--entry->users > 0 || !entry->forgotten) return;
  }
  Release(entry);
}

void RegionStore::ForgetLocked(Entry* entry) {
  const auto owner = owners_.find(entry->identity);
  const auto mine = owner->second.regions.find(entry->number);
  EntryPtr kept = std::move(mine->second);
  owner->second.regions.erase(mine);
  regions_.erase(entry->number);
  by_id_.erase(entry->id());
  timer_->Cancel(entry->timer);
  entry->forgotten = true;
  if (entry->users == 0) Release(std::move(kept));
}

void RegionStore::Release(EntryPtr entry) {
  thread_.Post([this, entry = std::move(entry)] {
    entry->Close();
    {
      MutexLock lock(mutex_);
      ReturnLocked(*entry);
    }
    if (entry->on_closed) entry->on_closed(Status());
  });
}

Status RegionStore::Unregister(const std::string& id, const std::string& identity) {
  MutexLock lock(mutex_);
  TILEWIRE_ASSIGN_OR_RETURN(Entry* const entry, FindLocked(id, identity, "region"));
  ForgetLocked(entry);
  return {};
}

void RegionStore::Unregister(const std::string& id, const std::string& identity,
                             std::function<void(Status)> on_unregistered) {
  Status status;
  {
    MutexLock lock(mutex_);
    if (const auto entry = FindLocked(id, identity, "region"); !entry) {
      status = entry.error();
    } else {
      if ((*entry)->on_device()) (*entry)->on_closed = std::exchange(on_unregistered, nullptr);
      ForgetLocked(*entry);
    }
  }
  if (on_unregistered) on_unregistered(std::move(status));
}

/// Use moves the end without touching the timer: that looks again when it comes.
void RegionStore::Expire(uint64_t number) {
  MutexLock lock(mutex_);
  const auto found = regions_.find(number);
  if (found == regions_.end()) return;
  Entry* const entry = found->second;
  const TimePoint now = timer_->Now();
  if (!Expired(*entry, now)) {
    const TimePoint again =
        std::max(entry->users > 0 ? now + entry->keep : entry->last_used + entry->keep, now);
    entry->timer = timer_->At(again, [this, number] { Expire(number); });
    return;
  }
  ++expired_;
  ForgetLocked(entry);
}

RegionFacts RegionStore::FactsOf(const Entry& entry) const {
  const TimePoint now = timer_->Now();
  const TimePoint idle_since = entry.users > 0 ? now : entry.last_used;
  return {.id = entry.id(),
          .request = entry.request,
          .age_seconds = Seconds(now - entry.registered),
          .expires_seconds = Seconds(idle_since + entry.keep - now),
          .idle_seconds = Seconds(now - idle_since),
          .users = entry.users};
}

RegionPage RegionStore::List(const std::string& identity, uint64_t from, size_t count) {
  RegionPage page{.quota_bytes = limits_.bytes_per_identity};
  MutexLock lock(mutex_);
  const auto owner = owners_.find(identity);
  if (owner == owners_.end()) return page;
  page.registered_bytes = owner->second.bytes;
  const TimePoint now = timer_->Now();
  for (auto next = owner->second.regions.lower_bound(from); next != owner->second.regions.end(); ++next) {
    if (Expired(*next->second, now)) continue;
    if (page.regions.size() == count) {
      page.next = next->first;
      break;
    }
    page.regions.push_back(FactsOf(*next->second));
  }
  return page;
}

void RegionStore::Close(const Status& why) {
  MutexLock lock(mutex_);
  if (closed_.ok()) closed_ = why;
  while (!regions_.empty()) ForgetLocked(regions_.begin()->second);
}

void RegionStore::Snapshot(EngineStats* stats) const {
  MutexLock lock(mutex_);
  stats->regions = static_cast<uint32_t>(regions_.size());
  stats->region_bytes = static_cast<uint64_t>(bytes_);
  stats->region_bytes_most = limits_.prefix.empty() ? 0 : static_cast<uint64_t>(limits_.bytes);
  stats->regions_expired = expired_;
}

}  // namespace tilewire::engine
