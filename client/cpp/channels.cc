#include "client/cpp/channels.h"

#include <absl/synchronization/mutex.h>
#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <iterator>
#include <thread>

#include "server/base/addresses.h"

namespace tilewire::client {
namespace {
constexpr int kMaxMessageBytes = (4 << 20) + (64 << 10);
constexpr size_t kMaxIdle = 16;

/// A connection that begins while no call waits for it is looked at by gRPC's backup poller alone, every 5 s
/// unless told otherwise; and where the last attempt failed, calls fail at once and wait for nothing. So a
/// server that was started anew stayed out of reach for 5 s. Before gRPC begins, which reads it then.
void LookAfterConnections() {
  constexpr int kKeepWhatIsSet = 0;
  setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "100", kKeepWhatIsSet);
}

/// Keeps gRPC initialised until the process ends. Else the last channel's destructor would shut gRPC down,
/// which joins a thread that, when a socket was full a moment ago, sleeps for up to 10 s. Nothing is lost:
/// the process ends anyway.
void KeepGrpc() {
  static const bool kept = (LookAfterConnections(), grpc_init(), true);
  (void)kept;
}

/// Spares the calls of this process from failing with UNAVAILABLE for a connection that was fine. gRPC 1.51
/// looks at what connect() left in errno only after it took a mutex, and the first thread of a process that
/// queues behind another one for any of Abseil's mutexes looks for the processor's clock rate in a file that
/// most machines lack: errno is ENOENT then, and the connection counts as failed. Here it happens beforehand.
/// Without time limits: Abseil's are by the wall clock, and last for hours where that is set back.
void QueueBehindAnother() {
  absl::Mutex mutex;
  int waiting = 0;
  bool over = false;
  const auto wait = [&] {
    const absl::MutexLock lock(&mutex);
    ++waiting;
    mutex.Await(absl::Condition(&over));
  };
  const auto let_go = [&] {
    const absl::MutexLock lock(&mutex);
    over = true;
  };
  std::jthread first(wait), second;  // joined when let go
  try {
    second = std::jthread(wait);
  } catch (...) {
    let_go();
    throw;
  }
  const auto both = +[](int* count) { return *count == 2; };
  mutex.LockWhen(absl::Condition(both, &waiting));  // free only once both are in the queue
  mutex.Unlock();
  let_go();
}

void SettleMutexes() {
  static const bool settled = (QueueBehindAnother(), true);
  (void)settled;
}

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const std::string& address,
                                                        const ConnectOptions& options) {
  if (!options.tls || address.starts_with("unix:")) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({.pem_root_certs = options.tls->ca,
                               .pem_private_key = options.tls->key,
                               .pem_cert_chain = options.tls->certificate});
}
}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const ConnectOptions& options) {
  KeepGrpc();
  SettleMutexes();
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(kMaxMessageBytes);
  args.SetMaxSendMessageSize(kMaxMessageBytes);
  args.SetCompressionAlgorithm(GRPC_COMPRESS_NONE);
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // gRPC's own retries would buffer messages; ours know which calls may be repeated.
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // So that our retries find a fresh connection attempt, not the memory of the last one.
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  // Any keepalive time makes gRPC set TCP_USER_TIMEOUT to the keepalive timeout, and only that closes a
  // connection whose socket takes no more bytes: until then not even a cancelled call ends while one of its
  // writes is stuck. Pings themselves are not wanted (servers punish many of them), so the time is as good as
  // never.
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX - 1);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(options.dead_peer_timeout.count()));
  return grpc::CreateCustomChannel(address, CredentialsOf(address, options), args);
}

bool MaySendToken(const std::string& address, const ConnectOptions& options) {
  return options.token.empty() || options.tls || options.insecure || StaysOnHost(address);
}

std::shared_ptr<grpc::Channel> StreamChannels::Take(const std::string& address) {
  if (address != address_ && !MaySendToken(address, options_)) return Take(address_);
  {
    const MutexLock lock(mutex_);
    const auto last = std::find_if(idle_.rbegin(), idle_.rend(),
                                   [&address](const auto& idle) { return idle.first == address; });
    if (last != idle_.rend()) {
      auto channel = std::move(last->second);
      idle_.erase(std::next(last).base());
      return channel;
    }
  }
  return MakeChannel(address, options_);
}

void StreamChannels::Return(std::shared_ptr<grpc::Channel> channel, const std::string& address) {
  std::shared_ptr<grpc::Channel> oldest;  // closed without the lock
  const MutexLock lock(mutex_);
  idle_.emplace_back(address, std::move(channel));
  if (idle_.size() <= kMaxIdle) return;
  oldest = std::move(idle_.front().second);
  idle_.erase(idle_.begin());
}

}  // namespace tilewire::client
