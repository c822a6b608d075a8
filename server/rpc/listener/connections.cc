#include "server/rpc/listener/connections.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

#include "server/rpc/listener/read_accounts.h"
#include "server/rpc/listener/tcp_facts.h"

namespace tilewire::rpc {
namespace {

/// Less than that no connection is ended for: a message on its way is more.
constexpr double kLeastBurdenBytes = 128 * 1024;

/// Who looks so late stood still, as all others did; and so long clients may need to notice.
constexpr double kStoodSeconds = 0.5, kNoticeSeconds = 2;

/// Of a peer that has closed its end: farewells.
constexpr int64_t kReadAtTheEndBytes = 16 << 10;

/// At a time; the kernel copies nothing of it.
constexpr size_t kDiscardBytes = size_t{1} << 30;

/// Each is a call of the kernel's.
constexpr size_t kCountedAtOnce = 64;
constexpr std::chrono::milliseconds kCountAgain{4};

/// gRPC would still take all that has come: with streams that are reset, megabytes become gigabytes.
void Discard(int fd) {
  while (recv(fd, nullptr, kDiscardBytes, MSG_TRUNC | MSG_DONTWAIT) > 0) {
  }
}

void ShutDown(int fd) {
  shutdown(fd, SHUT_RDWR);
  Discard(fd);
}

}  // namespace

std::optional<Refusal> Connections::Refuse(const Peer& peer) const {
  const MutexLock lock(mutex_);
  if (static_cast<int>(all_.size()) - probes_ >= limits_.most) return Refusal::kFull;
  const auto of_peer = by_peer_.find(peer.group);
  if (of_peer != by_peer_.end() && of_peer->second.connections >= limits_.most_per_peer)
    return Refusal::kPeer;
  return std::nullopt;
}

Connections::Id Connections::Add(Peer peer, FileDescriptor second) {
  if (!peer.is_probe) observer_->OnConnectionOpened();
  const MutexLock lock(mutex_);
  probes_ += peer.is_probe ? 1 : 0;
  OfPeer& of_peer = by_peer_[peer.group];
  ++of_peer.connections;
  const auto [added, is_new] =
      all_.emplace(++last_id_, Connection{.peer = std::move(peer), .second = std::move(second)});
  Connection& connection = added->second;
  connection.of_peer = &of_peer;
  if (!connection.peer.is_tcp()) return last_id_;
  for (size_t weight = 0; weight < of_peer.waits.size(); ++weight)
    connection.account->turns[weight]->of_peer = of_peer.waits[weight];
  connection.account->seen = ReadAccounts::OfProcess().asked();
  connection.account = ReadAccounts::OfProcess().Add(connection.peer.name, connection.account);
  any_restrained_ |= Restrain(connection, frames_before_.Of(connection.peer.group));  // until the next look
  return last_id_;
}

void Connections::With(Id id, const std::function<void(int second)>& use) const {
  const MutexLock lock(mutex_);
  const auto found = all_.find(id);
  if (found != all_.end()) use(found->second.second.get());
}

void Connections::SetDistance(Id id, Clock::duration round_trip, int64_t window) {
  const MutexLock lock(mutex_);
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  found->second.account->round_trip_us = std::chrono::duration<double, std::micro>(round_trip).count();
  found->second.account->window = window;
}

void Connections::PeerClosed(Id id) {
  With(id, [](int fd) {
    if (UnreadBytes(fd) > kReadAtTheEndBytes) ShutDown(fd);
  });
}

void Connections::Remove(Id id) {
  std::optional<Connection> gone;  // closed without the lock
  {
    const MutexLock lock(mutex_);
    const auto found = all_.find(id);
    if (found == all_.end()) return;
    gone = std::move(found->second);
    all_.erase(found);
    if (gone->peer.is_tcp()) {
      Discard(gone->second.get());
      ReadAccounts::OfProcess().Remove(gone->peer.name);
      Leave(&*gone);
    }
    probes_ -= gone->peer.is_probe ? 1 : 0;
    if (--gone->of_peer->connections == 0) by_peer_.erase(gone->peer.group);
  }
  const bool told = !gone->peer.is_probe;
  gone.reset();  // first: who is told may count on its descriptor
  if (told) observer_->OnConnectionClosed();
}

void Connections::Clear() {
  std::unordered_map<Id, Connection> gone;
  size_t told = 0;
  {
    const MutexLock lock(mutex_);
    gone.swap(all_);
    by_peer_.clear();
    told = gone.size() - static_cast<size_t>(std::exchange(probes_, 0));
  }
  for (const auto& [id, connection] : gone)
    if (connection.peer.is_tcp()) ReadAccounts::OfProcess().Remove(connection.peer.name);
  gone.clear();
  for (size_t i = 0; i < told; ++i) observer_->OnConnectionClosed();
}

size_t Connections::size() const {
  const MutexLock lock(mutex_);
  return all_.size();
}

Unread Connections::CountUnread(TimePoint now) {
  const MutexLock lock(mutex_);
  if (now - counted_ < kCountAgain) return unread_;
  counted_ = now;
  Unread calls;
  size_t seen = 0;
  for (size_t i = 0; i < all_.bucket_count() && seen < kCountedAtOnce; ++i) {
    bucket_ = (bucket_ + 1) % all_.bucket_count();
    for (auto at = all_.begin(bucket_); at != all_.end(bucket_); ++at, ++seen) {
      Connection& connection = at->second;
      connection.recent.Update(now, *connection.account);
      const int fd = connection.second.get();
      const int64_t unread = UnreadBytes(fd);
      const int64_t read =
          connection.recent.MayBeInAMessage(unread) ? static_cast<int64_t>(BytesOf(fd).received) - unread : 0;
      const Unread of_connection = connection.recent.In(unread, connection.account.get(), read);
      calls += of_connection;
      const auto& turns = connection.account->turns;
      turns[static_cast<size_t>(Weight::kLight)]->unread = static_cast<int>(of_connection.light);
      turns[static_cast<size_t>(Weight::kHeavy)]->unread = static_cast<int>(of_connection.heavy);
    }
  }
  const double stands_for = seen == 0 ? 0 : static_cast<double>(all_.size()) / static_cast<double>(seen);
  unread_ = {.light = calls.light * stands_for, .heavy = calls.heavy * stands_for};
  return unread_;
}

void Connections::EndLocked(Connection* connection, Ending why) {
  if (std::exchange(connection->ended, true)) return;
  if (!connection->account->end_told.exchange(true)) observer_->OnConnectionEnded(why);
  ShutDown(connection->second.get());
}

void Connections::CutOff(Id id) {
  With(id, ShutDown);
}

void Connections::Rest(double seconds) {
  const MutexLock lock(mutex_);
  failed_before_.Pass(seconds);
  frames_before_.Pass(seconds);
}

void Connections::Look(double seconds) {
  const MutexLock lock(mutex_);
  failed_before_.Pass(seconds);
  frames_before_.Pass(seconds);
  forgive_seconds_ = seconds > kStoodSeconds ? kNoticeSeconds : forgive_seconds_ - seconds;
  double most_failed = failed_before_.most();
  for (auto& [id, connection] : all_) {
    const TcpBytes bytes = BytesOf(connection.second.get());
    connection.account->received.store(bytes.received, std::memory_order_relaxed);
    connection.burden.Update(seconds, bytes.received, *connection.account);
    if (forgive_seconds_ > 0) connection.burden.ForgiveUntaken();
    const auto unread = static_cast<uint64_t>(UnreadBytes(connection.second.get()));
    connection.unasked.Update(
        seconds, {.received = bytes.received - std::min(unread, bytes.received), .sent = bytes.sent},
        *connection.account);
    if (connection.unasked.too_many()) EndLocked(&connection, Ending::kUnasked);
    if (connection.burden.failed_calls() > limits_.most_failed_calls)
      EndLocked(&connection, Ending::kFailedCalls);
    most_failed = std::max(most_failed, connection.burden.failed_calls());
  }
  EndOfPeers(most_failed);
  RestrainPeers();
}

int Connections::ShedWorst() {
  const MutexLock lock(mutex_);
  double worst = 0;
  for (const auto& [id, connection] : all_)
    if (!connection.ended) worst = std::max(worst, connection.burden.idle_bytes());
  if (worst < kLeastBurdenBytes) return 0;
  int count = 0;
  for (auto& [id, connection] : all_) {
    if (connection.ended || connection.burden.idle_bytes() < worst / 2) continue;
    EndLocked(&connection, Ending::kMemory);
    ++count;
  }
  return count;
}

}  // namespace tilewire::rpc
