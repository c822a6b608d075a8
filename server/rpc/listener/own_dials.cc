#include "server/rpc/listener/own_dials.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

namespace tilewire::rpc {
namespace {
// More than are ever under way; those that never arrived are forgotten then.
constexpr size_t kMostNames = 256;
}  // namespace

FileDescriptor OwnDials::Dial(int listener) {
  sockaddr_storage at{};
  socklen_t bytes = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  if (getsockname(listener, address, &bytes) != 0) return {};
  const MutexLock lock(mutex_);
  FileDescriptor fd(socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // A wildcard is this machine, when it is dialled.
  if (!fd || (connect(fd.get(), address, bytes) != 0 && errno != EINPROGRESS)) return {};
  if (at.ss_family == AF_UNIX) return fd;  // its process is asked for
  bytes = sizeof at;
  if (getsockname(fd.get(), address, &bytes) != 0) return {};
  if (names_.size() >= kMostNames) names_.clear();
  names_.insert(PeerOf(fd.get(), at).name);
  return fd;
}

bool OwnDials::Take(const Peer& peer) {
  if (peer.own_process) return true;
  const MutexLock lock(mutex_);
  return names_.erase(peer.name) > 0;
}

}  // namespace tilewire::rpc
