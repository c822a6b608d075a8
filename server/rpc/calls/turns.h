// Which connections hold their calls back, where not all may send: in turns.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "server/base/mutex.h"
#include "server/base/timing.h"
#include "server/rpc/listener/turn.h"

namespace tilewire::rpc {

/// Of the connections that call, as many send at any time as are to: whoever has sent for longest is asked
/// first, and whoever holds back comes again a while after the one that was asked before him, so that they
/// come one by one. Thread-safe.
class Turns {
 public:
  /// A call of `turn` came. True: it is the first one for a while, or ever, and had better be asked at once:
  /// of those that come newly as large a part is asked as of all, or else nobody would be who makes a
  /// connection a call.
  bool Calls(const std::shared_ptr<Turn>& turn, TimePoint now);

  struct Parts {
    int send = 0, hold = 0;
    double sends() const { return send + hold > 0 ? static_cast<double>(send) / (send + hold) : 1; }
  };
  /// Of the connections that called lately or hold back, those that may send and those that do not. Tells
  /// anew which peers have few calls that wait (IsOfFew).
  Parts Count(TimePoint now);

  struct Plan {
    double share = 1;         ///< of the connections, which are to send
    Clock::duration step{};   ///< between two that come again, unless that makes their turns very long
    Clock::duration least{};  ///< no shorter does anybody hold back: others come for as long, before all know
    int waiting = 0;          ///< those alone are asked of whose calls so many wait
  };
  /// From now on.
  void Choose(TimePoint now, const Plan& plan);

  /// For how long `turn`, of which a call has just come, is asked to hold others back, if it is. `at_once`:
  /// as Calls() said.
  std::optional<Clock::duration> Asks(Turn* turn, TimePoint now, bool at_once = false);

  /// Whether `turn` is of a peer of whose calls fewer wait, and did lately, than half an equal part of all
  /// for each who has any. Such are not asked.
  bool IsOfFew(const Turn& turn) const {
    const int few = few_.load(std::memory_order_relaxed);
    return turn.of_peer != nullptr && turn.waiting.load(std::memory_order_relaxed) < few &&
           turn.of_peer->lately.load(std::memory_order_relaxed) < few;
  }

 private:
  bool HasMany(const Turn& turn) const {
    return turn.waiting.load(std::memory_order_relaxed) >= waiting_.load(std::memory_order_relaxed) &&
           !IsOfFew(turn);
  }
  void CountPeers(double seconds) TILEWIRE_REQUIRES(mutex_);
  std::optional<Clock::duration> AsksAgain(Turn* turn, TimePoint until, TimePoint now);

  std::atomic<uint64_t> last_asked_{0};  ///< who is no younger is asked
  std::atomic<int> waiting_{0};          ///< of whose calls so many wait
  std::atomic<int> few_{0};              ///< less than so many of a peer's

  Mutex mutex_;
  std::vector<std::shared_ptr<Turn>> turns_ TILEWIRE_GUARDED_BY(mutex_);  ///< that call or hold back
  std::vector<uint64_t> orders_ TILEWIRE_GUARDED_BY(mutex_);              ///< of those that may be asked
  uint64_t next_ TILEWIRE_GUARDED_BY(mutex_) = 1;
  Parts parts_ TILEWIRE_GUARDED_BY(mutex_);  ///< as of the last Count
  double share_ TILEWIRE_GUARDED_BY(mutex_) = 1;
  double new_ TILEWIRE_GUARDED_BY(mutex_) = 0;      ///< connections that came newly and are still to be asked
  double surplus_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< of what they sent for, seconds times connections
  TimePoint chosen_ TILEWIRE_GUARDED_BY(mutex_), counted_ TILEWIRE_GUARDED_BY(mutex_);
  TimePoint last_comes_ TILEWIRE_GUARDED_BY(mutex_);  ///< of those who hold back
  Clock::duration step_ TILEWIRE_GUARDED_BY(mutex_){}, least_ TILEWIRE_GUARDED_BY(mutex_){};
};

}  // namespace tilewire::rpc
