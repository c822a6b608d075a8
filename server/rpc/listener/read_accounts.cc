#include "server/rpc/listener/read_accounts.h"

#include <utility>

#include "server/rpc/listener/peer.h"

namespace tilewire::rpc {

ReadAccounts& ReadAccounts::OfProcess() {
  static auto* const all = new ReadAccounts;  // who reads may outlive any static object
  return *all;
}

bool ReadAccounts::AnyStill() const {
  TimePoint until = short_until_.load(std::memory_order_relaxed);
  if (until > Clock::now()) return true;
  // So that nobody asks for the time any more, unless it was said anew.
  short_until_.compare_exchange_strong(until, TimePoint{}, std::memory_order_relaxed);
  return false;
}

std::shared_ptr<ConnectionAccount> ReadAccounts::Add(const std::string& name,
                                                     std::shared_ptr<ConnectionAccount> account) {
  const MutexLock lock(mutex_);
  Counted& counted = accounts_[name];
  if (counted.connections++ == 0) counted.account = std::move(account);
  return counted.account;
}

void ReadAccounts::Remove(const std::string& name) {
  const MutexLock lock(mutex_);
  const auto found = accounts_.find(name);
  if (found != accounts_.end() && --found->second.connections == 0) accounts_.erase(found);
}

std::shared_ptr<ConnectionAccount> ReadAccounts::Find(const std::string& peer) const {
  const std::string& name = PeerName(peer);
  const MutexLock lock(mutex_);
  const auto found = accounts_.find(name);
  return found == accounts_.end() ? nullptr : found->second.account;
}

}  // namespace tilewire::rpc
