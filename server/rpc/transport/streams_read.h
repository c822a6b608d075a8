// Whose account is told what is read of a connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "server/base/mutex.h"
#include "server/rpc/listener/account.h"

namespace tilewire::rpc {

/// Which account is whose is asked once a connection. Thread-safe; of one parser, who reads one connection,
/// at a time.
class StreamsRead {
 public:
  using Parser = const void*;
  using Find = std::function<std::shared_ptr<ConnectionAccount>()>;

  /// Of the connection whose account `find` finds; null: it has none. Good until it ends.
  template <typename F>
  ConnectionAccount* Of(Parser parser, const F& find) {
    if (last.parser != parser || last.ends != ends_.load(std::memory_order_relaxed))
      last = Look(parser, find);
    return last.account;
  }
  /// The same where it was asked for before; else null.
  ConnectionAccount* Known(Parser parser) {
    if (last.parser == parser && last.ends == ends_.load(std::memory_order_relaxed)) return last.account;
    return LookKnown(parser);
  }
  /// There is no such parser any more.
  void Forget(Parser parser);

 private:
  struct Last {
    Parser parser = nullptr;
    uint64_t ends = 0;
    ConnectionAccount* account = nullptr;
  };
  Last Look(Parser parser, const Find& find);
  ConnectionAccount* LookKnown(Parser parser);

  static constinit thread_local Last last;  ///< that the thread has read
  Mutex mutex_;
  std::unordered_map<Parser, std::shared_ptr<ConnectionAccount>> accounts_ TILEWIRE_GUARDED_BY(mutex_);
  std::atomic<uint64_t> ends_{1};  ///< of parsers, after each of which another may be where it was
};

}  // namespace tilewire::rpc
