// Regions: memory of clients on this host, shared or of the device, registered so that jobs may read operands
// from it and write results into it.
//
//   Register ──quota──> (a thread of the store: open, check, map, pin) ──> region ──Use──> jobs
//                                                                            └ Unregister, expiry, Close
//
// As with arrays (array_store.h), what is unregistered or expired cannot be used any more at once; the
// mapping, and its share of the limits, go with the last job that uses it. A region expires when no job has
// used it for a time: nobody else would tell that its client is dead.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/array/status.h"
#include "server/base/executor.h"
#include "server/base/mutex.h"
#include "server/base/stats.h"
#include "server/base/timer.h"
#include "server/engine/device/device.h"
#include "server/engine/stores/region.h"

namespace tilewire::engine {

struct RegionLimits {
  std::string prefix;              ///< that names must begin with; empty: shared memory is off
  int64_t bytes = 0;               ///< of all regions, in whole pages; 0: half of what the process may use
  int64_t bytes_per_identity = 0;  ///< 0: the same
  double seconds = 3600;           ///< without use until a region expires, where its client names none
  double longest_seconds = 86400;  ///< and the longest that a client may name
  bool device = false;             ///< memory of the device is on
};

/// What is known of a region.
struct RegionFacts {
  std::string id;
  RegionRequest request;
  double age_seconds = 0,
         expires_seconds = 0;  ///< since it was registered, until it expires unless it is used
  double idle_seconds = 0;     ///< since its last use ended, or since it was registered
  uint32_t users = 0;
};

struct RegionPage {
  std::vector<RegionFacts> regions;  ///< oldest first
  uint64_t next = 0;                 ///< where the next page begins; 0: this was the last
  int64_t registered_bytes = 0, quota_bytes = 0;
};

/// Thread-safe. Outlives uses. Callbacks run without a lock held.
class RegionStore {
 public:
  using OnRegistered = std::function<void(Result<RegionFacts>)>;

  RegionStore(std::string instance, const RegionLimits& limits, Device* device, Timer* timer);
  /// No use or timer call may be left.
  ~RegionStore() = default;

  /// Maps and pins, on the store's thread, which then calls `on_registered`; what is refused at once is told
  /// before this returns. UNIMPLEMENTED `REGIONS_OFF`; INVALID_ARGUMENT: a name that is none or has not the
  /// prefix, a time over the limit, memory of a device that has not the bytes or has them at no multiple of
  /// kForeignAlignment; RESOURCE_EXHAUSTED `LIMIT`: more than the limits; `BUSY`: for now; else as
  /// SharedMemory::Map and Device::PinHost, or Device::OpenShared. The same memory registered again is
  /// another region.
  void Register(const std::string& identity, const RegionRequest& request, OnRegistered on_registered);
  /// NOT_FOUND `REGION`: none of this identity's; `WRONG_INSTANCE`: of another server; FAILED_PRECONDITION
  /// `REGION_SHRUNK`: its memory is not all there. `field` is to blame.
  Result<RegionUse> Use(const std::string& id, const std::string& identity, const std::string& field);
  /// NOT_FOUND as Use(). What is left of the region goes with its last use.
  Status Unregister(const std::string& id, const std::string& identity);
  /// The same; `on_unregistered` is called once, for memory of a device when it is closed, after its last
  /// use: then its owner may free it.
  void Unregister(const std::string& id, const std::string& identity,
                  std::function<void(Status)> on_unregistered);
  /// At most `count` of the identity's regions, from `from` (RegionPage::next, or 0) on.
  RegionPage List(const std::string& identity, uint64_t from, size_t count);
  /// Forgets every region, and refuses what comes with `why`.
  void Close(const Status& why);

  const RegionLimits& limits() const { return limits_; }
  /// Fills what concerns regions.
  void Snapshot(EngineStats* stats) const;

 private:
  struct Entry final : Region, std::enable_shared_from_this<Entry> {
    Entry(std::string id, const RegionRequest& wanted, std::string owner)
        : Region(std::move(id), wanted.writable, wanted.handle.has_value()),
          request(wanted),
          identity(std::move(owner)) {}
    /// Opens and checks; maps and pins what is shared memory.
    Status Open(Device* device) { return on_device() ? OpenDevice(device) : Map(device); }
    Status Map(Device* device);
    Status OpenDevice(Device* device);
    void Close();
    const RegionRequest request;
    const std::string identity;
    uint64_t number = 0;
    int64_t quota_bytes = 0;  ///< 0: memory of a device, of which the server has nothing to give
    TimePoint registered, last_used;
    Clock::duration keep{};  ///< without use
    uint32_t users = 0;
    bool forgotten = false;
    std::function<void(Status)> on_closed;
    Timer::Id timer = 0;
  };
  using EntryPtr = std::shared_ptr<Entry>;
  struct Owner {
    // Registered, being registered, and forgotten but not unmapped.
    int64_t bytes = 0;
    int64_t held = 0, held_on_device = 0;  ///< regions
    std::map<uint64_t, EntryPtr> regions;
  };

  Status CheckRequest(const RegionRequest& request) const;
  Status CheckShared(const RegionRequest& request) const;
  Status CheckSharedBytes(const RegionRequest& request) const;
  Status CheckDevice(const RegionRequest& request) const;
  Status TakeLocked(const Entry& entry) TILEWIRE_REQUIRES(mutex_);
  void ReturnLocked(const Entry& entry) TILEWIRE_REQUIRES(mutex_);
  Result<RegionFacts> Admit(const EntryPtr& entry);
  Result<Entry*> FindLocked(const std::string& id, const std::string& identity, const std::string& field)
      TILEWIRE_REQUIRES(mutex_);
  void Unuse(const EntryPtr& entry);
  void ForgetLocked(Entry* entry) TILEWIRE_REQUIRES(mutex_);
  /// Closes on the store's thread and gives its share of the limits back.
  void Release(EntryPtr entry);
  void Expire(uint64_t number);
  static bool Expired(const Entry& entry, TimePoint now) {
    return entry.users == 0 && entry.last_used + entry.keep <= now;
  }
  RegionFacts FactsOf(const Entry& entry) const;

  const std::string instance_;
  const RegionLimits limits_;
  Device* const device_;
  Timer* const timer_;
  mutable Mutex mutex_;
  Status closed_ TILEWIRE_GUARDED_BY(mutex_);
  uint64_t last_number_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< regions are numbered as they are registered
  int64_t bytes_ TILEWIRE_GUARDED_BY(mutex_) = 0;         ///< as Owner::bytes, of all
  int64_t held_ TILEWIRE_GUARDED_BY(mutex_) = 0;          ///< as Owner::held, of all
  std::map<std::string, Owner> owners_ TILEWIRE_GUARDED_BY(mutex_);
  std::map<uint64_t, Entry*> regions_ TILEWIRE_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Entry*> by_id_ TILEWIRE_GUARDED_BY(mutex_);
  uint64_t expired_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  SerialThread thread_;  // last: what it runs uses all of the above
};

}  // namespace tilewire::engine
