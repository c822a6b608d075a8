// Regions: memory of clients on this host, shared or of the device, registered so that jobs may read operands
// from it and write results into it.
//
//   Register ──quota──> (a thread of the store: open, check, map, pin) ──> region ──Use──> jobs
//                                                                            └ Unregister, expiry, Close
//
// A region expires when no job has used it for a time: nobody else would tell that its client is dead.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "kernels/array/status.h"
#include "server/base/executor.h"
#include "server/base/stats.h"
#include "server/engine/device/device.h"
#include "server/engine/stores/owned_store.h"
#include "server/engine/stores/region.h"

namespace tilewire::engine {

struct RegionLimits {
  std::string prefix;              ///< that names must begin with; empty: shared memory is off
  int64_t bytes = 0;               ///< of all regions, in whole pages; 0: half of what the process may use
  int64_t bytes_per_identity = 0;  ///< 0: the same
  int64_t count_per_identity = 0;  ///< 0: MostOfOne()
  double seconds = 3600;           ///< without use until a region expires, where its client names none
  double longest_seconds = 86400;  ///< and the longest that a client may name
  bool device = false;             ///< memory of the device is on
};

/// What is known of a region.
struct RegionFacts : OwnedFacts {
  RegionRequest request;
};
using RegionPage = OwnedPage<RegionFacts>;

/// A region in the store. It takes bytes of the quotas only where it is memory of the host.
struct RegionEntry final : Region, Owned, std::enable_shared_from_this<RegionEntry> {
  using Shown = Region;
  using Facts = RegionFacts;
  using Limits = RegionLimits;
  static constexpr StoreWords kWords{.one = "region",
                                     .several = "regions",
                                     .which = "a region that is registered",
                                     .are = "registered",
                                     .reason = "REGION",
                                     .told_in = "RegionInfo.region",
                                     .flags = "region",
                                     .count_key = "regions",
                                     .bytes_key = "region_bytes"};
  static constexpr bool kUsesPutEndOff = true;

  RegionEntry(std::string id, const RegionRequest& wanted)
      : Region(std::move(id), wanted.writable, wanted.handle.has_value()), request(wanted) {}
  RegionFacts facts() const { return {{}, request}; }
  /// Opens and checks; maps and pins what is shared memory.
  Status Open(Device* device) { return on_device() ? OpenDevice(device) : Map(device); }
  void Close();

  const RegionRequest request;
  std::function<void(Status)> on_closed;

 private:
  Status Map(Device* device);
  Status OpenDevice(Device* device);
};

/// Thread-safe. Outlives uses. Callbacks run without a lock held.
class RegionStore final : public OwnedStore<RegionEntry> {
 public:
  using OnRegistered = std::function<void(Result<RegionFacts>)>;

  RegionStore(std::string instance, const RegionLimits& limits, Device* device, Timer* timer);

  /// Maps and pins, on the store's thread, which then calls `on_registered`; what is refused at once is told
  /// before this returns. UNIMPLEMENTED `REGIONS_OFF`; INVALID_ARGUMENT: a name that is none or has not the
  /// prefix, a time over the limit, memory of a device that has not the bytes or has them at no multiple of
  /// kForeignAlignment; RESOURCE_EXHAUSTED `LIMIT`: more than the limits; `BUSY`: for now; else as
  /// SharedMemory::Map and Device::PinHost, or Device::OpenShared. The same memory registered again is
  /// another region.
  void Register(const std::string& identity, const RegionRequest& request, OnRegistered on_registered,
                const OwnQuota& own = {});
  /// NOT_FOUND as Use(), which also fails with FAILED_PRECONDITION `REGION_SHRUNK`. What is left of the
  /// region goes with its last use.
  Status Unregister(const std::string& id, const std::string& identity);
  /// The same; `on_unregistered` is called once, for memory of a device when it is closed, after its last
  /// use: then its owner may free it.
  void Unregister(const std::string& id, const std::string& identity,
                  std::function<void(Status)> on_unregistered);
  /// Fills what concerns regions.
  void Snapshot(EngineStats* stats) const;

 private:
  Status CheckRequest(const RegionRequest& request, const OwnQuota& own) const;
  Status CheckShared(const RegionRequest& request) const;
  Status CheckSharedBytes(const RegionRequest& request, const OwnQuota& own) const;
  Status CheckDevice(const RegionRequest& request) const;
  Status EnterLocked(const RegionEntry& entry, const OwnQuota& own) TILEWIRE_REQUIRES(mutex_);
  Result<RegionFacts> Admit(const EntryPtr& entry);
  /// Closes what it has and gives its share of the limits back. On the store's thread.
  void CloseEntry(RegionEntry* entry);
  void ReleaseLocked(EntryPtr entry, Entries* freed) TILEWIRE_REQUIRES(mutex_) override;

  Device* const device_;
  /// Regions of device memory, by owner, from when they are to be opened until they are closed.
  std::map<std::string, int64_t> on_device_ TILEWIRE_GUARDED_BY(mutex_);
  SerialThread thread_{"tw-regions"};  // last: what it runs uses all of the above
};

}  // namespace tilewire::engine
