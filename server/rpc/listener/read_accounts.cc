#include "server/rpc/listener/read_accounts.h"

#include <utility>

#include "server/rpc/listener/peer.h"

namespace tilewire::rpc {

ReadAccounts& ReadAccounts::OfProcess() {
  static auto* const all = new ReadAccounts;  // who reads may outlive any static object
  return *all;
}

void ReadAccounts::Add(const std::string& name, std::shared_ptr<ConnectionAccount> account) {
  const MutexLock lock(mutex_);
  accounts_[name] = std::move(account);
}

void ReadAccounts::Remove(const std::string& name, const ConnectionAccount* account) {
  const MutexLock lock(mutex_);
  const auto found = accounts_.find(name);
  if (found != accounts_.end() && found->second.get() == account) accounts_.erase(found);
}

std::shared_ptr<ConnectionAccount> ReadAccounts::Find(const std::string& peer) const {
  const std::string& name = PeerName(peer);
  const MutexLock lock(mutex_);
  const auto found = accounts_.find(name);
  return found == accounts_.end() ? nullptr : found->second;
}

}  // namespace tilewire::rpc
