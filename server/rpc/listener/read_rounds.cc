#include "server/rpc/listener/read_rounds.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "server/rpc/listener/peer.h"
#include "server/rpc/listener/read_accounts.h"
#include "server/rpc/listener/tcp_facts.h"

#ifndef TCP_CM_INQ
#define TCP_CM_INQ 36  // of Linux, TCP_INQ: newer than some C libraries
#endif

namespace tilewire::rpc {
namespace {

/// More than any socket holds unless it was told to, so that most rounds ask nobody.
constexpr int64_t kLeastRoundBytes = 4 << 20;

struct Round {
  std::atomic<int64_t> bytes{0};    ///< 1 and more; 0: it is none of ours
  std::atomic<uint64_t> socket{0};  ///< the kernel's number of it: others may have the descriptor by now
};
/// By descriptor; those beyond are read as ever.
std::array<Round, 65536> rounds;

Round* RoundOf(int fd) {
  return fd >= 0 && static_cast<size_t>(fd) < rounds.size() ? &rounds[static_cast<size_t>(fd)] : nullptr;
}

/// What the kernel said of the queue in a message that it filled; null: nothing.
unsigned char* QueuedIn(msghdr* message) {
  for (cmsghdr* said = CMSG_FIRSTHDR(message); said != nullptr; said = CMSG_NXTHDR(message, said))
    if (said->cmsg_level == SOL_TCP && said->cmsg_type == TCP_CM_INQ &&
        said->cmsg_len == CMSG_LEN(sizeof(int)))
      return CMSG_DATA(said);
  return nullptr;
}

template <typename T>
T Option(int fd, int name) {
  T value{};
  socklen_t bytes = sizeof value;
  return getsockopt(fd, SOL_SOCKET, name, &value, &bytes) == 0 ? value : T{};
}

/// Whether what comes is still worth being read. Costs some calls of the kernel's, and only while somebody is
/// to be kept short.
bool MayBeRead(int fd) {
  const auto* const round = RoundOf(fd);
  if (round == nullptr || round->bytes.load(std::memory_order_relaxed) == 0) return true;
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0 || peer.ss_family == AF_UNIX)
    return true;
  const auto account = ReadAccounts::OfProcess().Find(PeerOf(fd, peer).name);
  if (account == nullptr || !account->short_of_frames) return true;
  const TcpBytes bytes = BytesOf(fd);
  const uint64_t read = bytes.received - std::min(bytes.received, static_cast<uint64_t>(UnreadBytes(fd)));
  if (account->MayBeRead(read, bytes.sent)) return true;
  account->overdrawn = true;
  shutdown(fd, SHUT_RDWR);
  return false;
}

/// It was found empty.
void EndRound(int fd) {
  auto* const round = RoundOf(fd);
  if (round != nullptr && round->bytes.load(std::memory_order_relaxed) != 0)
    round->bytes.store(1, std::memory_order_relaxed);
}

}  // namespace

void BeginRounds(int fd) {
  auto* const round = RoundOf(fd);
  if (round == nullptr) return;
  round->socket.store(Option<uint64_t>(fd, SO_COOKIE), std::memory_order_relaxed);
  round->bytes.store(1, std::memory_order_relaxed);
}

int SayQueued(int fd, int64_t read_bytes, int queued) {
  auto* const round = RoundOf(fd);
  const int64_t before = round == nullptr ? 0 : round->bytes.load(std::memory_order_relaxed);
  if (before == 0) return queued;
  int64_t now = queued == 0 ? 1 : before + read_bytes;
  if (now > kLeastRoundBytes) {
    if (Option<uint64_t>(fd, SO_COOKIE) != round->socket.load(std::memory_order_relaxed)) {
      now = 0;
    } else if (now >
               2 * int64_t{Option<int>(fd, SO_RCVBUF)}) {  // twice what it may hold, as the kernel counts
      now = 1, queued = 0;
    }
  }
  round->bytes.store(now, std::memory_order_relaxed);
  return queued;
}

}  // namespace tilewire::rpc

/// In place of the C library's, which it calls, for all of the process.
extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  using Receive = ssize_t(int, msghdr*, int);
  static auto* const next = reinterpret_cast<Receive*>(dlsym(RTLD_NEXT, "recvmsg"));
  if (tilewire::rpc::ReadAccounts::OfProcess().any_kept_short() && !tilewire::rpc::MayBeRead(fd))
    return 0;  // as if it had ended
  const ssize_t read = next(fd, message, flags);
  if (read < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) tilewire::rpc::EndRound(fd);
  if (read <= 0) return read;
  if (unsigned char* const at = tilewire::rpc::QueuedIn(message)) {
    int queued = 0;
    std::memcpy(&queued, at, sizeof queued);
    queued = tilewire::rpc::SayQueued(fd, read, queued);
    std::memcpy(at, &queued, sizeof queued);
  }
  return read;
}
