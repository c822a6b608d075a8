// Devices that misbehave on purpose: slow, faulty, out of memory; and one that pretends to memory of its own.
// They wrap a real one, stack on each other, keep the seam's promises (order within a lane, each callback
// exactly once and never inside the submitting call), and repeat themselves exactly for a seed. For tests,
// and for seeing how a server behaves on a bad day.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "server/base/mutex.h"
#include "server/engine/device/device.h"
#include "tests/devices/faults.h"

namespace tilewire::engine {

struct SlowOptions {
  std::chrono::microseconds copy_in{0}, copy_out{0}, launch{0};
  /// On top, uniform in [0, jitter]; the k-th submission to the n-th lane always gets the same.
  std::chrono::microseconds jitter{0};
  uint64_t seed = 1;
};

/// How slow a device is now; shared by the test and the device. Thread-safe.
class Slowness {
 public:
  explicit Slowness(const SlowOptions& options = {}) : options_(options) {}
  /// Of all that is submitted from now on.
  void Set(const SlowOptions& options);
  SlowOptions options() const;

 private:
  mutable Mutex mutex_;
  SlowOptions options_ TILEWIRE_GUARDED_BY(mutex_);
};

/// What `options.jitter` adds to the `submission`-th submission (from 0) of the `lane`-th lane (from 0).
std::chrono::microseconds SlowJitter(const SlowOptions& options, uint64_t lane, uint64_t submission);

/// Every submission starts only after its delay, as late as it may: data that the caller changes or frees too
/// early shows as a wrong result. Lanes delay independently of each other.
std::unique_ptr<Device> MakeSlow(std::unique_ptr<Device> device, const SlowOptions& options);
std::unique_ptr<Device> MakeSlow(std::unique_ptr<Device> device, std::shared_ptr<const Slowness> slowness);

/// `faults` says which submissions fail, and whether the device is gone with it.
std::unique_ptr<Device> MakeFaulty(std::unique_ptr<Device> device, std::shared_ptr<Faults> faults);

/// `shortage` says which allocations are BUSY.
std::unique_ptr<Device> MakeOutOfMemory(std::unique_ptr<Device> device, std::shared_ptr<Shortage> shortage);

/// Says that its memory is no host memory, so that the engine stages blocks and copies in and out as on a
/// GPU. `kernels_reach_pinned` as in DeviceFacts: small jobs then run in pinned memory, and small results of
/// operands that are on the device already lie there.
std::unique_ptr<Device> MakeStaged(std::unique_ptr<Device> device, bool kernels_reach_pinned = false);

}  // namespace tilewire::engine
