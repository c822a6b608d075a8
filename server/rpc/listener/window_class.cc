#include "server/rpc/listener/window_class.h"

#include <algorithm>
#include <chrono>

namespace tilewire::rpc {
namespace {

/// Places of that size that must be free for one of them to be given, where a smaller one would do.
constexpr int64_t kPlenty = 4;

}  // namespace

int64_t WindowNeeded(Clock::duration round_trip) {
  if (round_trip < kWideFrom) return 0;
  const double bytes = kWideRate * std::chrono::duration<double>(round_trip).count();
  if (bytes >= static_cast<double>(kMostWideBytes)) return kMostWideBytes;
  const auto steps = static_cast<int64_t>(bytes) / kLeastWideBytes + 1;
  return std::min(steps * kLeastWideBytes, kMostWideBytes);
}

WindowClass ClassOf(int64_t window) {
  if (window == 0) return WindowClass::kNear;
  return window < kFarWindowBytes ? WindowClass::kMiddle : WindowClass::kFar;
}

int64_t WindowPlaces::Take(Id id, int64_t needed, int64_t least) {
  Return(id);
  if (needed == 0) return 0;
  int64_t window = needed;
  least = std::min(least, needed);
  while (window > least && kPlenty * PlaceBytes(window) > free_bytes_) window = std::max(window / 2, least);
  if (PlaceBytes(window) > free_bytes_) return 0;
  free_bytes_ -= PlaceBytes(window);
  taken_[id] = window;
  return window;
}

void WindowPlaces::Return(Id id) {
  const auto found = taken_.find(id);
  if (found == taken_.end()) return;
  free_bytes_ += PlaceBytes(found->second);
  taken_.erase(found);
}

}  // namespace tilewire::rpc
