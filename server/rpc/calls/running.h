// The calls that a server has under way, and how it ends them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
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
  /// That its connection has received, as of lately; 0 where nobody knows. Only while it waits_for_open().
  virtual uint64_t connection_bytes() const = 0;

 protected:
  ~Endable() = default;
};

/// How long a first message may take.
struct MessagePatience {
  Clock::duration within;
  /// For as many bytes its connection has as long again: they are those of others, which go first.
  double moving_bytes;
};

/// Calls between their start and the end of their last coroutine. Thread-safe; outlives them.
class RunningCalls {
 public:
  void Begin(std::weak_ptr<Endable> call);
  void End(const Endable* call);
  /// The same for one that ends soon, whatever happens.
  void BeginShort();
  void EndShort();

  /// Cuts, with `why`, those that wait for their first message for longer than they may. Time counts from the
  /// first of these looks that finds a call waiting; and two have to find it late: what lay in its socket
  /// while the server stood still is read between them.
  void CutUnopened(TimePoint now, const MessagePatience& patience, const Status& why);

  /// From now on new jobs are refused, and first messages have all their time, whenever their calls came.
  void BeginDrain();
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
    std::optional<TimePoint> waits_since;  ///< for its first message, as far as anybody looked
    uint64_t received = 0;                 ///< by its connection, then
    bool found_late = false;
  };
  static bool IsLate(const Endable& call, TimePoint now, const MessagePatience& patience, Running* running);

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
