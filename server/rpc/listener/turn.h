// What is known of one connection for the sake of turns (server/rpc/calls/turns.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "server/base/timing.h"

namespace tilewire::rpc {

/// Calls of one weight that wait, of all connections of one peer that call. Thread-safe but for `counted`.
struct PeerWaits {
  std::atomic<int> lately{0};  ///< that do, or did lately
  int counted = 0;             ///< for Turns, while they count
};

/// Of the calls of one weight. Thread-safe; the times are those of whoever calls Turns.
struct Turn {
  std::atomic<int> waiting{0};                ///< of its calls, those that wait,
  std::atomic<int> unread{0};                 ///< and those that nobody has read, as far as is known
  std::shared_ptr<PeerWaits> of_peer;         ///< null: nobody counts them. Set before calls come
  std::atomic<TimePoint> seen{TimePoint{}};   ///< when the last call came, to a millisecond
  std::atomic<TimePoint> until{TimePoint{}};  ///< then it may send again
  std::atomic<TimePoint> told{TimePoint{}};   ///< until then it need not be told so again
  std::atomic<uint64_t> order{0};  ///< the smaller, the longer it may send already; 0: no Turns know it
};

}  // namespace tilewire::rpc
