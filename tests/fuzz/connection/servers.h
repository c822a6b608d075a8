// The servers that the connection fuzzer attacks, in this process.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/mutex.h"
#include "server/engine/engine.h"
#include "server/rpc/listener/file_descriptor.h"
#include "server/rpc/server.h"

namespace tilewire::fuzz {

/// Counts what begins and what ends. Thread-safe.
class Counts final : public rpc::CallObserver {
 public:
  void OnCallStart(std::string_view) override { Count(+1, 0); }
  void OnCallEnd(const rpc::CallRecord& record) override;
  void OnConnectionOpened() override { Count(0, +1); }
  void OnConnectionClosed() override { Count(0, -1); }
  void OnConnectionRefused(rpc::Refusal why) override;

  /// Calls of the id that is followed, and what the failed ones among them were told.
  struct Ended {
    int calls = 0;
    std::vector<std::string> failures;
  };
  /// From now on; others, such as late ones of a connection that is gone, do not count.
  void Follow(const std::string& request_id);
  /// Once there are so many, or as many as there will be.
  Ended AwaitEnded(int calls);

  /// Waits until no call is under way and no connection is there. False: it never came to that.
  bool AwaitNone();

 private:
  void Note(const rpc::CallRecord& record);
  void Count(int call, int connection);

  Mutex mutex_;
  CondVar changed_;
  int calls_ TILEWIRE_GUARDED_BY(mutex_) = 0, connections_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  std::string followed_ TILEWIRE_GUARDED_BY(mutex_);
  Ended ended_ TILEWIRE_GUARDED_BY(mutex_);
};

/// A whole server on the CPU device, listening on loopback and on a unix socket.
class FuzzedServer {
 public:
  /// `staged`: its device says that it has memory of its own.
  explicit FuzzedServer(bool staged);
  ~FuzzedServer();

  rpc::FileDescriptor Dial(bool by_unix) const;
  /// Ends the program unless nothing is left of all connections: no call, no job, nothing that is leased;
  /// arrays and regions that calls left on purpose are deleted first.
  void CheckNothingIsLeft();
  Counts& counts() { return counts_; }
  /// Ends the program unless calls on a connection of their own are answered rightly.
  void CheckHonestCalls() const;

 private:
  void DeleteAll();

  const std::string socket_path_;
  Counts counts_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<rpc::Server> server_;
};

/// Shared memory of a name that begins as regions may; the name goes with it.
class SharedPages {
 public:
  SharedPages();
  ~SharedPages();
  const std::string& name() const { return name_; }

 private:
  std::string name_;  ///< of the length of an id
};

}  // namespace tilewire::fuzz
