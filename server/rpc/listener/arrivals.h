// Connections between being accepted and being handed to gRPC: how far away they are, and which windows they
// get.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/base/timing.h"
#include "server/rpc/listener/file_descriptor.h"
#include "server/rpc/listener/observer.h"
#include "server/rpc/listener/window_class.h"

namespace tilewire::rpc {

/// Windows by distance.
struct WindowOptions {
  int64_t wide_bytes = 0;  ///< of all places with wide windows; 0: all connections are near
  /// A SETTINGS frame to measure round trips with; empty where that cannot be, because connections are not
  /// clear: then what the kernel knows must do, and all wide windows have kSealedWideBytes.
  std::string greeting;
};

/// Where a connection belongs.
struct Entrance {
  int64_t window = 0;  ///< bytes that each of its streams may send unread; 0: a near one
  /// Others than this host or this process may be at its other end, or see what passes; not so of unix
  /// sockets, and of the server's connections to itself.
  bool beyond = false;
};

/// For the listener's thread alone.
class Arrivals {
 public:
  using Id = uint64_t;
  /// Takes a connected socket and closes it when it is done with it.
  using HandOver = std::function<void(FileDescriptor connection, Entrance by)>;

  /// Told how far the other end of a connection is, and which window it gets, before it is handed over.
  using Measured = std::function<void(Id, Clock::duration round_trip, int64_t window)>;

  /// `longest_wait`: for an answer to the greeting.
  Arrivals(WindowOptions options, Clock::duration longest_wait, HandOver hand_over, Measured measured,
           ConnectionObserver* observer)
      : options_(std::move(options)),
        longest_wait_(longest_wait),
        hand_over_(std::move(hand_over)),
        measured_(std::move(measured)),
        observer_(observer),
        places_(options_.wide_bytes) {}

  /// Whether distance makes a difference: for others there is only HandNear.
  bool on() const { return options_.wide_bytes > 0; }
  void HandNear(FileDescriptor connection, bool beyond) {
    hand_over_(std::move(connection), {.beyond = beyond});
  }
  /// One from beyond. Hands it over at once where no answer could tell more. Else returns true: Came is then
  /// wanted for whatever comes in, until that returns true.
  bool Begin(Id id, FileDescriptor connection);
  /// Something came in. Whether it has been handed over.
  bool Came(Id id);
  bool waiting(Id id) const { return waiting_.contains(id); }
  /// Hands over those that have not answered for the longest wait, as far as they are by TCP. Returns which.
  std::vector<Id> GiveUp(TimePoint now);
  /// The connection has ended: its place is free.
  void Ended(Id id);
  /// Closes those that were not handed over.
  void Clear() { waiting_.clear(); }

 private:
  struct Waiting {
    FileDescriptor connection;
    TimePoint since;
  };
  using Asked = std::unordered_map<Id, Waiting>;
  /// Whether there is an answer, and it is handed over.
  bool HandAnswered(Asked::iterator found, TimePoint now);
  void HandAsked(Asked::iterator found, Clock::duration answered_after);
  /// Its round trip is TCP's, or the answer's if that took longer.
  void Hand(Id id, FileDescriptor connection, Clock::duration answered_after);

  const WindowOptions options_;
  const Clock::duration longest_wait_;
  const HandOver hand_over_;
  const Measured measured_;
  ConnectionObserver* const observer_;
  WindowPlaces places_;
  Asked waiting_;
  uint64_t narrowed_ = 0, narrowed_told_ = 0;
  TimePoint tell_next_{};
};

}  // namespace tilewire::rpc
