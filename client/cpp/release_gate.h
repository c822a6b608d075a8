// Payload slices that reference memory of the caller, and the count of those that gRPC still holds. Internal.
#pragma once

#include <grpcpp/support/slice.h>

#include <atomic>
#include <memory>

#include "client/cpp/source.h"

namespace tilewire::client {

/// Counts slices that gRPC holds. A finished write does not mean that its slice is free, only its release
/// callback does. Thread-safe: callbacks run on any gRPC thread, also after the call is over.
class ReleaseGate : public std::enable_shared_from_this<ReleaseGate> {
 public:
  /// A gRPC slice over `slice.bytes`, without a copy; holds `slice.owner` until gRPC releases it.
  grpc::Slice Wrap(SourceSlice slice) {
    auto* hold = new Hold{std::move(slice.owner), shared_from_this()};
    held_.fetch_add(1, std::memory_order_relaxed);
    return grpc::Slice(const_cast<uint8_t*>(slice.bytes.data()), slice.bytes.size(), &ReleaseGate::Release,
                       hold);
  }
  bool AllReleased() const { return held_.load(std::memory_order_acquire) == 0; }

 private:
  struct Hold {
    std::shared_ptr<const void> owner;
    std::shared_ptr<ReleaseGate> gate;
  };
  static void Release(void* user_data) {
    const std::unique_ptr<Hold> hold(static_cast<Hold*>(user_data));
    hold->owner.reset();
    hold->gate->held_.fetch_sub(1, std::memory_order_release);
  }

  std::atomic<int64_t> held_{0};
};

}  // namespace tilewire::client
