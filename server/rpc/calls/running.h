// The calls that a server has under way, and how it ends them.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/base/time_source.h"

namespace tilewire::rpc {

/// A call that can be ended from outside its coroutines. Thread-safe.
class Endable {
 public:
  /// Fails what it does; `cut` also ends what waits for the client.
  virtual void End(const Status& status, bool cut) = 0;
  /// Whether it waits for its first message: whatever it is told, it goes on waiting unless it is cut.
  virtual bool waits_for_open() const = 0;

 protected:
  ~Endable() = default;
};

/// Calls between their start and the end of their last coroutine. Thread-safe; outlives them.
class RunningCalls {
 public:
  void Begin(std::weak_ptr<Endable> call);
  void End(const Endable* call);
  /// Cuts, with `why`, those that wait for their first message and did so `within` ago, as far as these calls
  /// can tell: it counts from the first that found a call waiting.
  void CutUnopened(TimePoint now, Clock::duration within, const Status& why);
  /// The same for one that ends soon, whatever happens.
  void BeginShort();
  void EndShort();

  /// From now on new jobs are refused.
  void BeginDrain() { draining_.store(true); }
  bool draining() const { return draining_.load(); }
  /// gRPC ends what is left: calls that are gone did not go by themselves.
  bool cutting() const { return cutting_.load(); }
  /// Waits until no call is active; false when `until` came first.
  bool WaitIdle(TimePoint until);
  /// Ends calls that still run at `until` with a status, and cuts those whose clients do not take it. All
  /// that end later are gRPC's doing, because the server goes away.
  void EndAll(TimePoint until);

 private:
  struct Running {
    std::weak_ptr<Endable> call;
    TimePoint waits_since{};  ///< for its first message; nobody found it waiting: TimePoint()
  };

  void TellAll(bool cut);

  std::atomic<bool> draining_{false}, cutting_{false};
  Mutex mutex_;
  CondVar ended_;
  int active_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  /// Of the active ones those that can be ended from outside.
  std::unordered_map<const Endable*, Running> calls_ TILEWIRE_GUARDED_BY(mutex_);
};

/// How calls end that the server does not wait for any longer.
Status ServerGone();

}  // namespace tilewire::rpc
