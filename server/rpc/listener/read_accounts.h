// Accounts of connections for who reads them, and knows their peers' names alone.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>

#include "server/base/mutex.h"
#include "server/rpc/listener/account.h"

namespace tilewire::rpc {

/// Of all listeners of the process, by Peer::name, TCP's alone. Thread-safe.
class ReadAccounts {
 public:
  static ReadAccounts& OfProcess();

  /// Whether somebody sees what is read, and asks for them. Said before connections come.
  void SetAsked(bool asked) { asked_.store(asked, std::memory_order_relaxed); }
  bool asked() const { return asked_.load(std::memory_order_relaxed); }

  void Add(const std::string& name, std::shared_ptr<ConnectionAccount> account);
  /// No-op where that name has another one by now.
  void Remove(const std::string& name, const ConnectionAccount* account);
  /// `peer`: as ServerContext::peer() says; null: not known.
  std::shared_ptr<ConnectionAccount> Find(const std::string& peer) const;

 private:
  std::atomic<bool> asked_{false};
  mutable Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<ConnectionAccount>> accounts_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire::rpc
