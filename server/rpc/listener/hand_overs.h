// Hands connections over on threads of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "server/base/mutex.h"
#include "server/base/timing.h"
#include "server/rpc/listener/arrivals.h"
#include "server/rpc/listener/file_descriptor.h"

namespace tilewire::rpc {

/// gRPC reads a connection on the thread that hands it over for as long as more has come, which a client
/// decides. Here (`tw-hand`) it keeps no listener from looking after all, and ending it; and where it keeps
/// others waiting there is another thread. Each goes by a door of its own (Entrance), since gRPC's let one
/// in at a time. Thread-safe.
class HandOvers {
 public:
  using Id = Arrivals::Id;

  /// Throws std::system_error where no thread can be made.
  explicit HandOvers(Arrivals::HandOver hand_over);
  ~HandOvers() { Stop(); }
  HandOvers(const HandOvers&) = delete;

  /// After those that were given before, unless one of these takes long. Closed instead after Stop().
  void Give(FileDescriptor connection, Entrance by);
  /// To be said several times a second. Returns which connections keep Stop() from returning, and are to be
  /// ended.
  std::vector<Id> LookAfter(TimePoint now);
  /// Closes those that wait; when it returns none is being handed over.
  void Stop();

 private:
  struct Waits {
    FileDescriptor connection;
    Entrance by;
    TimePoint since;
  };

  void AddThread() TILEWIRE_REQUIRES(mutex_);
  void Run(int door);

  const Arrivals::HandOver hand_over_;
  Mutex mutex_;
  CondVar wake_;
  std::deque<Waits> waiting_ TILEWIRE_GUARDED_BY(mutex_);
  std::vector<Id> in_hand_ TILEWIRE_GUARDED_BY(mutex_);  ///< by thread; 0: none
  bool stopped_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire::rpc
