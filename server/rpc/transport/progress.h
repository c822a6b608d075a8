// Whether a thread gets on, as another one sees it that looks now and then.
#pragma once

#include <grpc/support/time.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "server/base/timing.h"

namespace tilewire::rpc {

/// gRPC 1.51 reads a connection for as long as more has come, on whatever thread waits for events, and does
/// not return to it before, whatever deadline the thread gave. A client that sends faster than it is read so
/// keeps a thread, which stands. Thread-safe as said.
class Progress {
 public:
  /// So long may a thread that gets on wait for gRPC, and do nothing else.
  static constexpr std::chrono::milliseconds kWaits{40};
  /// And so long where another one stands: gRPC 1.51 may then forget to wake it.
  static constexpr std::chrono::milliseconds kWaitsBeside{2};

  /// Said by the thread.
  void Made() { turn_.store(turn_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  /// By one who looks: none was made since it was seen so at least twice, long enough ago.
  bool Stands(TimePoint now) {
    const uint64_t turn = turn_.load(std::memory_order_relaxed);
    if (turn != seen_) {
      seen_ = turn, since_ = now, looks_ = 0;
      return false;
    }
    return ++looks_ >= 2 && now - since_ >= kStandsAfter;
  }

 private:
  static constexpr std::chrono::milliseconds kStandsAfter{90};

  std::atomic<uint64_t> turn_{1};
  uint64_t seen_ = 0;  ///< these are of who looks
  TimePoint since_{};
  int looks_ = 0;
};

/// A deadline for gRPC.
inline gpr_timespec After(std::chrono::milliseconds wait) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(wait.count(), GPR_TIMESPAN));
}

}  // namespace tilewire::rpc
