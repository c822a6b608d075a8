// Connections that the server makes to itself, to see whether it answers.
#pragma once

#include <set>
#include <string>

#include "server/base/mutex.h"
#include "server/rpc/listener/file_descriptor.h"
#include "server/rpc/listener/peer.h"

namespace tilewire::rpc {

/// Knows its own connections when they come in, so that no limit keeps them out: a server that is full is
/// not dead. Thread-safe.
class OwnDials {
 public:
  /// Begins to connect, without waiting, to where the socket `listener` listens. None where that fails at
  /// once, with errno set.
  FileDescriptor Dial(int listener);
  /// Whether the connection that just came in from `peer` is one of them. Each is told of once.
  bool Take(const Peer& peer);

 private:
  Mutex mutex_;  ///< held while a connection begins: it may come in before its port can be asked for
  std::set<std::string> names_ TILEWIRE_GUARDED_BY(mutex_);  ///< Peer::name, of TCP
};

}  // namespace tilewire::rpc
