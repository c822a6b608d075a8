// Hands connections over on a thread of its own.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "server/base/mutex.h"
#include "server/rpc/listener/arrivals.h"
#include "server/rpc/listener/file_descriptor.h"

namespace tilewire::rpc {

/// gRPC reads a connection on the thread that hands it over for as long as more has come, which a client
/// decides. Here (`tw-hand`) it keeps others from being handed over, but not the listener from looking after
/// all, and ending it. Thread-safe.
class HandOvers {
 public:
  /// Throws std::system_error where no thread can be made.
  explicit HandOvers(Arrivals::HandOver hand_over);
  ~HandOvers() { Stop(); }
  HandOvers(const HandOvers&) = delete;

  /// After those that were given before. Closed instead after Stop().
  void Give(FileDescriptor connection, Entrance by);
  /// Closes those that wait; when it returns none is being handed over.
  void Stop();

 private:
  void Run();

  const Arrivals::HandOver hand_over_;
  Mutex mutex_;
  CondVar wake_;
  std::deque<std::pair<FileDescriptor, Entrance>> waiting_ TILEWIRE_GUARDED_BY(mutex_);
  bool stopped_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tilewire::rpc
