// What the connections of one peer do all together, those that are gone, too: who comes again and again with
// another one is the same.
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "server/rpc/listener/connections.h"
#include "server/rpc/listener/read_accounts.h"
#include "server/rpc/listener/tcp_facts.h"

namespace tilewire::rpc {
namespace {

/// Of the failed calls that all connections of one peer may have, as many as one is ended for.
constexpr double kManyOfPeer = 1.0 / 16;
/// And of those that one may have as many as it leaves to its peer: fewer cost no more than a connection.
constexpr double kManyOfOne = 1.0 / 64;
/// Of those that connections left that are gone, from which on the others of that peer are restrained.
constexpr double kRestrained = 1.0 / 4;
/// A peer with many connections may have more: that many of them as many as one.
constexpr double kAsOne = 4;

/// KiB that all connections of one peer may send beside headers and messages: to read them takes a quarter of
/// a second or so, and who sent none himself does not feel it.
constexpr double kMostFrames = 4 << 10, kKiB = 1 << 10;

}  // namespace

void Connections::Leave(Connection* gone) {
  ConnectionAccount& account = *gone->account;
  TcpBytes bytes = BytesOf(gone->second.get());
  if (bytes.received == 0) bytes.received = account.received;
  gone->burden.Update(0, bytes.received, account);
  gone->unasked.Update(0, bytes, account);
  const double most = limits_.most_failed_calls;
  // What a restrained one was ended for is no reason to restrain the others any longer.
  const double failed = account.restrained ? gone->burden.failed_calls() : gone->burden.left_calls(account);
  if (failed > most * kManyOfOne || account.restrained)
    failed_before_.Left(gone->peer.group, failed, 2 * most);
  frames_before_.Left(gone->peer.group, gone->unasked.frames() / kKiB, 2 * kMostFrames);
  if (account.overdrawn && !account.end_told.exchange(true)) observer_->OnConnectionEnded(Ending::kUnasked);
}

bool Connections::Restrain(const Connection& connection, double frames_of_peer) const {
  ConnectionAccount& account = *connection.account;
  account.restrained = failed_before_.Of(connection.peer.group) > limits_.most_failed_calls * kRestrained;
  const bool is_short = frames_of_peer > kMostFrames;
  if (is_short && !account.short_of_frames) {
    const int fd = connection.second.get();
    const auto unread = static_cast<double>(UnreadBytes(fd));  // which is not forgiven
    const TcpBytes bytes = BytesOf(fd);
    const double received = static_cast<double>(bytes.received) - unread;
    account.forgiven = std::max(0.0, received - ReadBudget::Paid(static_cast<double>(bytes.sent),
                                                                 static_cast<double>(account.carried)));
  }
  account.short_of_frames = is_short;
  if (is_short) ReadAccounts::OfProcess().KeepShort();
  return is_short || account.restrained;
}

void Connections::EndOfPeers(double most_failed) {
  // Of two at least that is a part.
  if (most_failed <= limits_.most_failed_calls * kManyOfPeer) return;
  std::unordered_map<std::string_view, double> failed;
  for (const auto& [id, connection] : all_) failed[connection.peer.group] += connection.burden.failed_calls();
  for (auto& [id, connection] : all_) {
    const double of_peer = failed[connection.peer.group] + failed_before_.Of(connection.peer.group);
    const double most = limits_.most_failed_calls * std::max(1.0, connection.of_peer->connections / kAsOne);
    if (connection.peer.is_tcp() && of_peer > most &&
        connection.burden.failed_calls() > limits_.most_failed_calls * kManyOfPeer)
      EndLocked(&connection, Ending::kFailedCalls);
  }
}

void Connections::RestrainPeers() {
  double all = 0;
  for (const auto& [id, connection] : all_) all += connection.unasked.frames() / kKiB;
  const bool any = all + frames_before_.most() > kMostFrames || failed_before_.most() > 0;
  if (!any && !any_restrained_) return;
  any_restrained_ = any;
  std::unordered_map<std::string_view, double> frames;
  for (const auto& [id, connection] : all_)
    frames[connection.peer.group] += connection.unasked.frames() / kKiB;
  for (const auto& [id, connection] : all_) {
    if (!connection.peer.is_tcp()) continue;
    const std::string& group = connection.peer.group;
    Restrain(connection, frames[group] + frames_before_.Of(group));
  }
}

}  // namespace tilewire::rpc
