// Accounts of connections for who reads them, and knows their peers' names alone.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <unordered_map>

#include "server/base/mutex.h"
#include "server/base/timing.h"
#include "server/rpc/listener/account.h"

namespace tilewire::rpc {

/// Of all listeners of the process, by Peer::name, TCP's alone. Thread-safe.
class ReadAccounts {
 public:
  static ReadAccounts& OfProcess();

  /// Whether somebody sees what is read, and asks for them. Said before connections come.
  void SetAsked(bool asked) { asked_.store(asked, std::memory_order_relaxed); }
  bool asked() const { return asked_.load(std::memory_order_relaxed); }

  /// Somebody is to be read no further than his headers and messages pay for, for some time.
  void KeepShort() { short_until_.store(Clock::now() + kShortFor, std::memory_order_relaxed); }
  bool any_kept_short() const {
    return short_until_.load(std::memory_order_relaxed) > TimePoint{} && AnyStill();
  }

  /// Another connection of that name: what it is to count with, `account` unless there is one already. The
  /// same port may be connected to several addresses of ours, which gRPC does not tell apart.
  std::shared_ptr<ConnectionAccount> Add(const std::string& name, std::shared_ptr<ConnectionAccount> account);
  /// Once for each.
  void Remove(const std::string& name);
  /// `peer`: as ServerContext::peer() says; null: not known.
  std::shared_ptr<ConnectionAccount> Find(const std::string& peer) const;

 private:
  static constexpr std::chrono::seconds kShortFor{2};  ///< which is said again as long as it is so
  bool AnyStill() const;

  std::atomic<bool> asked_{false};
  mutable std::atomic<TimePoint> short_until_{TimePoint{}};
  mutable Mutex mutex_;
  struct Counted {
    std::shared_ptr<ConnectionAccount> account;
    int connections = 0;
  };
  std::unordered_map<std::string, Counted> accounts_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire::rpc
