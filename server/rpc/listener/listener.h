// The server's door: listens, accepts, and hands connections over. gRPC's own listener decides nothing: it
// takes connections until descriptors end, and is deaf from then on. No gRPC here.
#pragma once

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kernels/array/status.h"
#include "server/base/timing.h"
#include "server/rpc/listener/arrivals.h"
#include "server/rpc/listener/connections.h"
#include "server/rpc/listener/hand_overs.h"
#include "server/rpc/listener/memory_watch.h"
#include "server/rpc/listener/own_dials.h"
#include "server/rpc/listener/sockets.h"

namespace tilewire::rpc {

/// One thread (`tw-accept`) takes connections and sees them end. What is over a limit is accepted and closed
/// at once: whoever waits in a backlog knows nothing, and one that is full keeps everybody out. Thread-safe.
class Listener {
 public:
  using HandOver = Arrivals::HandOver;
  using LookAfter = std::function<void(TimePoint now)>;

  /// Listens on all of `addresses` (sockets.h); nobody is taken in before Start. `observer` outlives it, and
  /// is warned of what a host has besides and cannot be listened on.
  /// `memory`: in place of this process' own, for tests.
  static Result<std::unique_ptr<Listener>> Open(const std::vector<std::string>& addresses,
                                                const ConnectionLimits& limits, ConnectionObserver* observer,
                                                MemoryWatch::Read memory = nullptr);
  ~Listener();
  Listener(const Listener&) = delete;

  /// Where it listens, with the ports that were picked.
  const std::vector<std::string>& addresses() const { return addresses_; }
  /// From now on connections are handed over, on threads of their own: one after the other, unless one takes
  /// long. `look_after` is called by the listener's thread some twenty times a second while there are
  /// connections, and when the last has gone. Once.
  void Start(HandOver hand_over, WindowOptions windows = {}, LookAfter look_after = nullptr);
  /// Takes no more connections and listens no longer; when it returns no one is being handed over.
  void Stop();
  /// Lets go of all connections, which those end that they were handed to. After Stop.
  void Drop() { connections_.Clear(); }

  /// As Connections::AccountOf.
  std::shared_ptr<ConnectionAccount> AccountOf(const std::string& peer) const {
    return connections_.AccountOf(peer);
  }

  /// As Connections::CountUnread.
  Unread CountUnread(TimePoint now) { return connections_.CountUnread(now); }

  /// A connection to each socket that it listens on, under way, which no limit refuses. Not after Stop.
  Result<std::vector<FileDescriptor>> DialAll();

 private:
  Listener(const ConnectionLimits& limits, uint64_t open_files, ConnectionObserver* observer,
           MemoryWatch::Read memory);
  Status Watch(int fd, uint32_t events, uint64_t key);
  void Run();
  /// What connections cost, and whether there is memory for it.
  void LookAfterAll();
  /// What somebody new sends may be much within a moment.
  void LookSoon();
  int WatchAgainMs() const;
  /// What ended connections freed goes back to the system, or it stays with the process and looks like that
  /// of the next ones.
  void GiveBack();
  /// Takes what waits at a socket, some of it.
  void AcceptFrom(int socket);
  void Take(FileDescriptor connection, const sockaddr_storage& from);
  /// Something came in, no sooner than `after`, or it has ended.
  void Told(Connections::Id id, uint32_t events, TimePoint after);
  /// Ends alone are of interest from now on.
  void WatchEnd(Connections::Id id);
  std::optional<Refusal> Judge(int fd, const Peer& peer);
  /// A connection of a process that has no descriptor left. Whether there was one: accept does not look
  /// before it has a descriptor.
  bool AcceptAndDrop(int socket);
  void Refused(Refusal why);
  /// For conditions that only time ends.
  void Pause();

  const uint64_t open_files_;
  const Clock::duration acknowledge_within_;
  ConnectionObserver* const observer_;
  std::vector<ListeningSockets> listening_;
  std::vector<std::string> addresses_;
  std::vector<int> sockets_;  ///< of all addresses
  FileDescriptor epoll_, stop_, spare_;
  Connections connections_;
  OwnDials own_dials_;
  std::unique_ptr<HandOvers> hand_overs_;
  LookAfter look_after_;
  bool any_ = false;  ///< connections were there when it was last asked; of the thread
  std::unique_ptr<Arrivals> arrivals_;
  uint64_t refused_ = 0, refused_told_ = 0;  ///< of the thread
  TimePoint tell_next_{}, last_look_{}, memory_looked_{}, last_watch_{}, watch_next_{};
  MemoryWatch memory_;
  int trims_left_ = 0;
  TimePoint trim_next_{};
  std::thread thread_;
};

}  // namespace tilewire::rpc
