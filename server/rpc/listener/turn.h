// What is known of one connection for the sake of turns (server/rpc/calls/turns.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "server/base/timing.h"

namespace tilewire::rpc {

/// Of the calls of one weight. Thread-safe; the times are those of whoever calls Turns.
struct Turn {
  std::atomic<int> waiting{0};  ///< of its calls, those that wait
  /// The same of all connections of its peer, with those that nobody has read, or did lately;
  /// null: nobody counts them. Set before calls come.
  std::shared_ptr<std::atomic<int>> of_peer;
  std::atomic<TimePoint> seen{TimePoint{}};   ///< when the last call came, to a millisecond
  std::atomic<TimePoint> until{TimePoint{}};  ///< then it may send again
  std::atomic<TimePoint> told{TimePoint{}};   ///< until then it need not be told so again
  std::atomic<uint64_t> order{0};  ///< the smaller, the longer it may send already; 0: no Turns know it
};

}  // namespace tilewire::rpc
