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
  static constexpr int kDoors = 8;

  int64_t window = 0;  ///< bytes that each of its streams may send unread; 0: a near one
  /// Others than this host or this process may be at its other end, or see what passes; not so of unix
  /// sockets, and of the server's connections to itself.
  bool beyond = false;
  uint64_t id = 0;  ///< of the connection, where the listener knows it
  int door = 0;     ///< nobody else goes by the same one meanwhile; below kDoors
};

/// When something came, at the earliest: no sooner than the listener knows, `after`, by how it looks, and
/// than the kernel does, by which nothing has come for `quiet` now. So a server that did not look makes
/// nobody far.
TimePoint CameAt(TimePoint after, TimePoint now, Clock::duration quiet);

/// For the listener's thread alone.
class Arrivals {
 public:
  using Id = uint64_t;
  /// Takes a connected socket and closes it when it is done with it.
  using HandOver = std::function<void(FileDescriptor connection, Entrance by)>;

  /// Told how far the other end of a connection is, and which window it gets, before it is handed over.
  using Measured = std::function<void(Id, Clock::duration round_trip, int64_t window)>;

  /// `acknowledge_within`: how long to wait for an answer to the greeting.
  Arrivals(WindowOptions options, Clock::duration acknowledge_within, HandOver hand_over, Measured measured,
           ConnectionObserver* observer)
      : options_(std::move(options)),
        acknowledge_within_(acknowledge_within),
        hand_over_(std::move(hand_over)),
        measured_(std::move(measured)),
        observer_(observer),
        places_(options_.wide_bytes) {}

  /// Whether distance makes a difference: for others there is only HandNear.
  bool on() const { return options_.wide_bytes > 0; }
  void HandNear(Id id, FileDescriptor connection, bool beyond) {
    hand_over_(std::move(connection), {.beyond = beyond, .id = id});
  }
  /// One from beyond. Hands it over at once where no answer could make its window wider, or nobody can be
  /// asked. Else returns true: Came is then
  /// wanted for whatever comes in, until that returns true.
  bool Begin(Id id, FileDescriptor connection);
  /// Something came in, no sooner than `after`. Whether it has been handed over.
  bool Came(Id id, TimePoint after);
  bool waiting(Id id) const { return asked_.contains(id); }
  /// Hands over those that have not answered in time, as far as they are by TCP, but for those whose answers
  /// came after `after`, when it was last looked. Returns which.
  std::vector<Id> GiveUp(TimePoint after, TimePoint now);
  /// The connection has ended: its place is free.
  void Ended(Id id);
  /// Closes those that were not handed over.
  void Clear() { asked_.clear(); }

 private:
  struct Asked {
    FileDescriptor connection;
    TimePoint since;
  };
  using Waiting = std::unordered_map<Id, Asked>;
  /// Whether there is an answer, and it is handed over.
  bool HandAnswered(Waiting::iterator found, TimePoint after, TimePoint now);
  void HandAsked(Waiting::iterator found, Clock::duration answered_after);
  /// Its round trip is TCP's, or the answer's if that took longer.
  void Hand(Id id, FileDescriptor connection, Clock::duration answered_after);

  const WindowOptions options_;
  const Clock::duration acknowledge_within_;
  const HandOver hand_over_;
  const Measured measured_;
  ConnectionObserver* const observer_;
  WindowPlaces places_;
  Waiting asked_;
  uint64_t narrowed_ = 0, narrowed_told_ = 0;
  TimePoint tell_next_{};
};

}  // namespace tilewire::rpc
