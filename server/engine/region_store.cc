#include "server/engine/region_store.h"

#include <algorithm>

#include "server/base/limits.h"
#include "server/base/memory.h"
#include "server/engine/random_id.h"

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

// --- one region -------------------------------------------------------------------------------------

Status RegionStore::Entry::Map(Device* device) {
  // A device that cannot pin what may only be read needs it writable, and leaves it as it is.
  const bool open_writable = writable_ || !device->facts().pins_read_only;
  auto mapped = SharedMemory::Map(request.name, request.offset, request.bytes, open_writable);
  if (!mapped) return mapped.error();
  memory_ = *std::move(mapped);
  auto pinned = device->PinHost(memory_.pages(), memory_.page_bytes(), open_writable);
  if (!pinned) return pinned.error();
  pin_ = *std::move(pinned);
  return memory_.Check();  // what was cut off meanwhile is told now, not to the first job
}

void RegionStore::Entry::Unmap() {
  pin_.Reset();
  memory_ = SharedMemory();
}

// --- registering --------------------------------------------------------------------------------------

RegionStore::RegionStore(std::string instance, const RegionLimits& limits, Device* device, Timer* timer)
    : instance_(std::move(instance)),
      limits_(WithDefaults(limits)),
      device_(device),
      timer_(timer),
      thread_("tw-regions") {}

Status RegionStore::CheckRequest(const RegionRequest& request) const {
  constexpr double kShortest = 0.001;
  if (limits_.prefix.empty())
    return Status(Code::kUnimplemented, "REGIONS_OFF",
                  "shared-memory regions are off; the operator allows them with --allow-regions");
  if (!IsSharedName(request.name) || !request.name.starts_with(limits_.prefix)) {
    const bool echo = request.name.size() <= kLongestId;
    return BadValue(
               "shared_memory.name",
               echo ? request.name : std::to_string(request.name.size()) + " characters long",
               "a name of shared memory that begins with " + limits_.prefix +
                   " (--allow-regions): visible ASCII, no other slash, no \"..\", at most 255 characters")
        .value();
  }
  if (request.seconds != 0 && !(request.seconds >= kShortest && request.seconds <= limits_.longest_seconds))
    return BadValue("ttl_seconds", std::to_string(request.seconds),
                    "0.001 to " + std::to_string(limits_.longest_seconds) + " (--longest-region-seconds)")
        .value();
  const auto over = [&request](int64_t limit, const char* flag) {
    return OverLimit("shared_memory.bytes", std::to_string(request.bytes),
                     "at most " + std::to_string(limit) + " (" + flag + ")")
        .value();
  };
  const auto too_many = [&request](int64_t limit) {  // in this order nothing overflows
    return request.bytes > static_cast<uint64_t>(limit) ||
           SharedMemory::PageBytes(request.offset, request.bytes) > static_cast<uint64_t>(limit);
  };
  if (too_many(limits_.bytes)) return over(limits_.bytes, "--region-bytes");
  if (too_many(limits_.bytes_per_identity))
    return over(limits_.bytes_per_identity, "--region-bytes-per-identity");
  return {};
}

Status RegionStore::TakeBytesLocked(const std::string& identity, int64_t bytes) {
  const auto owner = owners_.find(identity);
  const int64_t owned = owner == owners_.end() ? 0 : owner->second.bytes;
  if (owned + bytes > limits_.bytes_per_identity)
    return Busy("your regions take " + std::to_string(owned) + " bytes and this one " +
                    std::to_string(bytes) + "; allowed: " + std::to_string(limits_.bytes_per_identity) +
                    " (--region-bytes-per-identity)",
                kRetryAfterMs);
  if (bytes_ + bytes > limits_.bytes)
    return Busy("all regions take " + std::to_string(bytes_) + " bytes and this one " +
                    std::to_string(bytes) + "; allowed: " + std::to_string(limits_.bytes) +
                    " (--region-bytes)",
                kRetryAfterMs);
  if (held_ >= kMaxRegions)
    return Busy(std::to_string(held_) + " regions are registered; allowed: " + std::to_string(kMaxRegions),
                kRetryAfterMs);
  owners_[identity].bytes += bytes;
  bytes_ += bytes;
  ++held_;
  return {};
}

void RegionStore::ReturnBytesLocked(const std::string& identity, int64_t bytes) {
  bytes_ -= bytes;
  --held_;
  const auto owner = owners_.find(identity);
  owner->second.bytes -= bytes;
  if (owner->second.bytes == 0) owners_.erase(owner);
}

void RegionStore::Register(const std::string& identity, const RegionRequest& request,
                           OnRegistered on_registered) {
  Status status = CheckRequest(request);
  EntryPtr entry;
  if (status.ok()) {
    entry = std::make_shared<Entry>(instance_ + "-" + RandomHex(), request, identity);
    entry->quota_bytes = static_cast<int64_t>(SharedMemory::PageBytes(request.offset, request.bytes));
    entry->keep = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(request.seconds == 0 ? limits_.seconds : request.seconds));
    std::lock_guard lock(mutex_);
    status = closed_.ok() ? TakeBytesLocked(identity, entry->quota_bytes) : closed_;
  }
  if (!status.ok()) return on_registered(Fail(std::move(status)));
  thread_.Post([this, entry = std::move(entry), on_registered = std::move(on_registered)] {
    Result<RegionFacts> facts = Admit(entry);
    if (!facts) {
      entry->Unmap();
      std::lock_guard lock(mutex_);
      ReturnBytesLocked(entry->identity, entry->quota_bytes);
    }
    on_registered(std::move(facts));
  });
}

Result<RegionFacts> RegionStore::Admit(const EntryPtr& entry) {
  TILEWIRE_RETURN_IF_ERROR(entry->Map(device_));
  std::lock_guard lock(mutex_);
  if (!closed_.ok()) return Fail(closed_);
  entry->number = ++last_number_;
  entry->registered = entry->last_used = Clock::now();
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
      Expired(*found->second, Clock::now()))  // its timer is on its way
    return Fail(NotFound(id, field, false));
  return found->second;
}

Result<RegionUse> RegionStore::Use(const std::string& id, const std::string& identity,
                                   const std::string& field) {
  RegionUse use;
  {
    std::lock_guard lock(mutex_);
    TILEWIRE_ASSIGN_OR_RETURN(Entry* const entry, FindLocked(id, identity, field));
    ++entry->users;
    use = RegionUse(entry, [this, kept = entry->shared_from_this()](const Region*) { Unuse(kept); });
  }
  TILEWIRE_RETURN_IF_ERROR(use->Check());
  return use;
}

void RegionStore::Unuse(const EntryPtr& entry) {
  {
    std::lock_guard lock(mutex_);
    entry->last_used = Clock::now();
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
    entry->Unmap();
    std::lock_guard lock(mutex_);
    ReturnBytesLocked(entry->identity, entry->quota_bytes);
  });
}

Status RegionStore::Unregister(const std::string& id, const std::string& identity) {
  std::lock_guard lock(mutex_);
  TILEWIRE_ASSIGN_OR_RETURN(Entry* const entry, FindLocked(id, identity, "region"));
  ForgetLocked(entry);
  return {};
}

/// Use moves the end without touching the timer: that looks again when it comes.
void RegionStore::Expire(uint64_t number) {
  std::lock_guard lock(mutex_);
  const auto found = regions_.find(number);
  if (found == regions_.end()) return;
  Entry* const entry = found->second;
  const TimePoint now = Clock::now();
  if (!Expired(*entry, now)) {
    const TimePoint again =
        std::max(entry->users > 0 ? now + entry->keep : entry->last_used + entry->keep, now);
    entry->timer = timer_->At(again, [this, number] { Expire(number); });
    return;
  }
  ++expired_;
  ForgetLocked(entry);
}

RegionFacts RegionStore::FactsOf(const Entry& entry) {
  const TimePoint now = Clock::now();
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
  std::lock_guard lock(mutex_);
  const auto owner = owners_.find(identity);
  if (owner == owners_.end()) return page;
  page.registered_bytes = owner->second.bytes;
  const TimePoint now = Clock::now();
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
  std::lock_guard lock(mutex_);
  if (closed_.ok()) closed_ = why;
  while (!regions_.empty()) ForgetLocked(regions_.begin()->second);
}

void RegionStore::Snapshot(EngineStats* stats) const {
  std::lock_guard lock(mutex_);
  stats->regions = static_cast<uint32_t>(regions_.size());
  stats->region_bytes = static_cast<uint64_t>(bytes_);
  stats->region_bytes_most = limits_.prefix.empty() ? 0 : static_cast<uint64_t>(limits_.bytes);
  stats->regions_expired = expired_;
}

}  // namespace tilewire::engine
