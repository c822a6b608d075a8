// What this machine can do at most, tier by tier, measured on request: the limits that rates are shares of.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "server/engine/device/device.h"

namespace tilewire::engine {

/// A tier and its rate.
struct Ceiling {
  std::string name;  ///< "h2d", "d2h", "h2d_both", "d2h_both", "host_copy_1", "host_copy_all", "device_copy"
  double bytes_per_second;
};

/// Memory that a measurement leases: two pieces of `unit` bytes on the device, and two in pinned memory (on a
/// device whose memory is host memory: there too).
struct CeilingMemory {
  int64_t unit = 0;
};

/// Measures at once, on lanes of its own, some 100 ms when the device is idle; on a busy one the rates are
/// what is left. Copies between host and device only where there are any. Fails as allocating, copying and
/// launching do.
Result<std::vector<Ceiling>> MeasureCeilings(Device* device, const CeilingMemory& memory);

/// Does that on a thread of its own, one at a time. Thread-safe.
class CeilingMeter {
 public:
  using OnMeasured = std::function<void(Result<std::vector<Ceiling>>)>;

  /// `device` outlives it.
  explicit CeilingMeter(Device* device) : device_(device) {}
  /// Waits for a measurement under way.
  ~CeilingMeter();
  CeilingMeter(const CeilingMeter&) = delete;
  CeilingMeter& operator=(const CeilingMeter&) = delete;

  /// Whether nothing is being measured; then it is the caller's turn, who must call Measure() or Release().
  bool TryAcquire() { return !busy_.exchange(true); }
  void Release() { busy_.store(false); }
  /// After TryAcquire(): calls `on_measured` once, on the thread, after the turn is over.
  void Measure(const CeilingMemory& memory, OnMeasured on_measured);

 private:
  Device* const device_;
  std::atomic<bool> busy_{false};
  std::thread thread_;  ///< touched only by whose turn it is, and by the destructor
};

}  // namespace tilewire::engine
