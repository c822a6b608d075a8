// The connections that there are, and who may have another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/base/mutex.h"
#include "server/base/timing.h"
#include "server/rpc/listener/account.h"
#include "server/rpc/listener/file_descriptor.h"
#include "server/rpc/listener/left_before.h"
#include "server/rpc/listener/limits.h"
#include "server/rpc/listener/observer.h"
#include "server/rpc/listener/peer.h"
#include "server/rpc/listener/read_accounts.h"
#include "server/rpc/listener/unasked.h"
#include "server/rpc/listener/unread.h"

namespace tilewire::rpc {

/// Each is kept by a second descriptor of its socket: gRPC owns the first and says nothing of its end.
/// Thread-safe.
class Connections {
 public:
  using Id = uint64_t;

  Connections(const ConnectionLimits& limits, ConnectionObserver* observer)
      : limits_(limits), observer_(observer) {}
  Connections(const Connections&) = delete;
  ~Connections() { Clear(); }  // accounts are the process's

  /// Why there is no place for another one of that peer; none: there is.
  std::optional<Refusal> Refuse(const Peer& peer) const;
  /// One that nobody refuses. `second` is a descriptor of its socket.
  Id Add(Peer peer, FileDescriptor second);
  /// Calls `use` with its descriptor, where it is known.
  void With(Id id, const std::function<void(int second)>& use) const;
  /// How far its other end is, and its window (ConnectionAccount::window). No-op where it is not known.
  void SetDistance(Id id, Clock::duration round_trip, int64_t window);
  /// Ends it, whatever is done with it; its end is told when it comes. No-op where it is not known.
  void CutOff(Id id);
  /// Its peer sends nothing more, and gRPC will close it once it has read what there is: where that is much
  /// it is not read. No-op where it is not known.
  void PeerClosed(Id id);
  /// It has ended; what it has left unread is not read. No-op where it is not known.
  void Remove(Id id);
  /// All have ended.
  void Clear();
  bool empty() const { return size() == 0; }
  size_t size() const;

  /// Where calls of a peer (ServerContext::peer()) count themselves; null for those of unix sockets, which
  /// nobody can tell apart, and for one that is gone.
  std::shared_ptr<ConnectionAccount> AccountOf(const std::string& peer) const {
    return ReadAccounts::OfProcess().Find(peer);
  }

  /// Calls that nobody has read, as of now or a few milliseconds ago; a guess (RecentCalls). Where there are
  /// very many connections a part of them stands for all, another each time.
  Unread CountUnread(TimePoint now);

  /// There were none for so long.
  void Rest(double seconds);
  /// Looks at what each costs, `seconds` after the last look, and ends those with too many failed calls, by
  /// themselves or with others of their peer, and those that send much that no call takes.
  void Look(double seconds);
  /// Ends those that hold most of what no call took, as of the last look: all of at least half as much as the
  /// first, if that is a burden at all. Returns how many. Their ends are told when they come.
  int ShedWorst();

 private:
  struct OfPeer {
    int connections = 0;
    std::array<std::shared_ptr<PeerWaits>, 2> waits{std::make_shared<PeerWaits>(),
                                                    std::make_shared<PeerWaits>()};  ///< by Weight
  };
  struct Connection {
    Peer peer;
    OfPeer* of_peer = nullptr;
    FileDescriptor second;
    std::shared_ptr<ConnectionAccount> account = std::make_shared<ConnectionAccount>();
    Burden burden;
    Unasked unasked;
    RecentCalls recent;
    bool ended = false;  ///< by us
  };

  void EndLocked(Connection* connection, Ending why) TILEWIRE_REQUIRES(mutex_);
  // All that one peer's have done together, those that are gone, too (connections_by_peer.cc):
  /// What one that is gone leaves to the others.
  void Leave(Connection* gone) TILEWIRE_REQUIRES(mutex_);
  /// Whether it is to be kept short, because of the others.
  bool Restrain(const Connection& connection, double frames_of_peer) const TILEWIRE_REQUIRES(mutex_);
  /// Ends those of peers that have too many failed calls, where theirs are many; none has more than
  /// `most_failed`, now or left by those that are gone.
  void EndOfPeers(double most_failed) TILEWIRE_REQUIRES(mutex_);
  /// Restrains those of peers that sent or did too much.
  void RestrainPeers() TILEWIRE_REQUIRES(mutex_);

  const ConnectionLimits limits_;
  ConnectionObserver* const observer_;
  mutable Mutex mutex_;
  Unread unread_ TILEWIRE_GUARDED_BY(mutex_);
  TimePoint counted_ TILEWIRE_GUARDED_BY(mutex_);  ///< when
  size_t bucket_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< of all_, the next one to look into
  Id last_id_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  int probes_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< of all_
  std::unordered_map<Id, Connection> all_ TILEWIRE_GUARDED_BY(mutex_);
  std::unordered_map<std::string, OfPeer> by_peer_ TILEWIRE_GUARDED_BY(mutex_);  ///< Peer::group
  LeftBefore failed_before_ TILEWIRE_GUARDED_BY(mutex_);
  LeftBefore frames_before_ TILEWIRE_GUARDED_BY(mutex_);  ///< KiB (Unasked::frames())
  bool any_restrained_ TILEWIRE_GUARDED_BY(mutex_) = false;
  double forgive_seconds_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< for which untaken calls do not count
};

}  // namespace tilewire::rpc
