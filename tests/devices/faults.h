// Which submissions and allocations fail: the switches of the devices that fail on purpose (decorators.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "kernels/array/status.h"
#include "server/base/mutex.h"

namespace tilewire::engine {

/// What is submitted to a lane.
enum class Submitted : uint8_t { kCopyIn = 0, kCopyOut = 1, kLaunch = 2 };
inline constexpr int kSubmittedCount = 3;

/// Which submissions fail; shared by the test and the device. Thread-safe.
class Faults {
 public:
  /// From now on, the `nth` (1: the next) submission of that kind, over all lanes, does nothing and completes
  /// with `status`, in its place in the lane's order. With `device_fails` the device is gone from that
  /// completion on: health() is `status`, whatever completes afterwards completes with it, and nothing can be
  /// allocated. One a kind: a second call replaces the first.
  void FailNth(Submitted kind, int64_t nth, Status status, bool device_fails = false);
  /// Forgets the faults that have not happened. A failed device stays failed.
  void Clear();
  /// Submissions of that kind so far, failed ones included.
  int64_t count(Submitted kind) const;
  /// Not OK once the device has failed.
  Status health() const;

  // For the device only.
  struct Fault {
    Status status;
    bool device_fails = false;
  };
  /// Counts a submission; the fault that hits it, if one does.
  std::optional<Fault> Count(Submitted kind);
  void FailDevice(const Status& status);

 private:
  struct Armed {
    int64_t at;
    Fault fault;
  };
  mutable Mutex mutex_;
  std::array<int64_t, kSubmittedCount> counts_ TILEWIRE_GUARDED_BY(mutex_){};
  std::array<std::optional<Armed>, kSubmittedCount> armed_ TILEWIRE_GUARDED_BY(mutex_);
  Status health_ TILEWIRE_GUARDED_BY(mutex_);
};

/// Which allocations fail; shared by the test and the device. Thread-safe.
class Shortage {
 public:
  /// From now on, the `nth` (1: the next) allocation of that kind is BUSY. One a kind; 0: none.
  void FailNthDevice(int64_t nth);
  void FailNthPinned(int64_t nth);
  /// Device memory beyond this many leased bytes is BUSY; negative: no cap. What is leased already stays.
  void CapDevice(int64_t bytes);
  int64_t leased_device_bytes() const;
  /// Allocations refused so far.
  int64_t refused() const;

  // For the device only.
  /// BUSY, or counts the bytes as leased.
  Status TakeDevice(int64_t bytes);
  void GiveDevice(int64_t bytes);
  Status TakePinned();

 private:
  mutable Mutex mutex_;
  int64_t device_in_ TILEWIRE_GUARDED_BY(mutex_) = 0,
                     pinned_in_
                     TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< allocations until the one that fails; 0: none
  int64_t device_cap_ TILEWIRE_GUARDED_BY(mutex_) = -1;
  int64_t leased_ TILEWIRE_GUARDED_BY(mutex_) = 0, refused_ TILEWIRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace tilewire::engine
