#include "server/rpc/listener/window_class.h"

namespace tilewire::rpc {

WindowClass NeededFor(Clock::duration round_trip) {
  size_t needed = 0;
  for (size_t i = 1; i < kRoundTrips.size(); ++i)
    if (round_trip >= kRoundTrips[i]) needed = i;
  return static_cast<WindowClass>(needed);
}

WindowClass WindowPlaces::Take(Id id, WindowClass needed) {
  Return(id);
  size_t given = static_cast<size_t>(needed);
  while (given > 0 && PlaceBytes(static_cast<WindowClass>(given)) > free_bytes_) --given;
  if (given > 0) {
    free_bytes_ -= PlaceBytes(static_cast<WindowClass>(given));
    taken_[id] = static_cast<WindowClass>(given);
  }
  return static_cast<WindowClass>(given);
}

void WindowPlaces::Return(Id id) {
  const auto found = taken_.find(id);
  if (found == taken_.end()) return;
  free_bytes_ += PlaceBytes(found->second);
  taken_.erase(found);
}

}  // namespace tilewire::rpc
