// Which share of the calls that clients have for a server it can do, where there are more: so that it can ask
// them to hold the others back, unsent.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "server/base/mutex.h"
#include "server/base/timing.h"
#include "server/rpc/calls/done_rate.h"
#include "server/rpc/calls/excess.h"
#include "server/rpc/calls/turns.h"

namespace tilewire::rpc {

/// Of calls of one weight. While no more come than are done they are counted, and no more. Where what waits
/// grows beyond what is done in about `late`, only a share of the connections that call may send, in turns
/// (Turns): that of the calls that would come which can be done, with a `crowd` less where few connections'
/// are, less what it takes to make up for those that wait, or more, while a call waits for no more than an
/// eighth of `late`, or a quarter of it without a `crowd`, of which 0.4 at most is what runs; without a
/// `crowd` also half of those too many at least are held back, until nearly all can be done. By what comes
/// and goes alone: no timer, and nothing while nobody calls. Thread-safe; times are the caller's.
class Throttle {
 public:
  /// `late` 0: nobody is asked. `crowd`: as many may wait before they count as too many; 0: it is a matter of
  /// how long they wait alone.
  explicit Throttle(Clock::duration late, double crowd = 0)
      : late_(late), crowd_(crowd), excess_(std::chrono::duration<double>(late).count(), crowd) {}

  /// A call that came: it waits, begins, and ends. Used by one thread at a time; `throttle` outlives it, and
  /// so does `line`, which counts the calls of its connection that wait; null where nobody knows that.
  class Passage {
   public:
    explicit Passage(Throttle* throttle, std::atomic<int>* line);
    ~Passage();
    Passage(const Passage&) = delete;
    Passage& operator=(const Passage&) = delete;
    /// It waits no longer, but runs until it ends.
    void Begins();
    /// It turns out not to be one of these.
    void Leaves();
    /// There was no place to wait at, because of others.
    void FindsNoPlace() { throttle_->full_.store(true, std::memory_order_relaxed); }

   private:
    void WaitsNoLonger();

    Throttle* const throttle_;
    std::atomic<int>* const line_;
    bool runs_ = false;
  };

  /// Whether Look() had better be called, after a call came.
  bool IsDue(TimePoint now) const {
    return late_ != Clock::duration{} && now - looked_.load(std::memory_order_relaxed) >= Interval();
  }
  /// Finds the share anew, where that is due. `unread`: calls that wait in sockets, beside those that came.
  /// True: it has just become less than all.
  bool Look(TimePoint now, double unread = 0);

  struct Hold {
    Clock::duration waits{};  ///< a call that comes now, before it begins; a guess
    Clock::duration hold{};   ///< for how long such calls had better not come
  };
  /// Whether the connection of a call, `turn`, is asked to hold others like it back: not where far more calls
  /// of other peers wait than of its own, or of other connections, unless most of what waits is unread; nor
  /// for the first one of a connection while nothing else waits or runs. Without a `crowd` also before its
  /// turn, where more than eight of its calls are `coming`, so many that they would wait for a third of
  /// `late`, were all who send served alike. For each call.
  std::optional<Hold> Asks(const std::shared_ptr<Turn>& turn, TimePoint now, int coming = 0);

  // Calls of a `turn` of whose peer far fewer wait than of others' wait because of these, and are none of
  // those that had better be refused.

  /// Whether a call that waited for `late`, or with a `crowd` half of it but a millisecond, before it could
  /// begin had better be refused: calls that came before clients knew, so that few are late for it. With a
  /// `crowd` that begins anew where they wait for twice `late` because hardly anything was done for a moment,
  /// a quarter of a second later at the soonest, or for very long, two seconds later. Without one only those
  /// that waited for as long as 48 take, if that is longer, up to four times `late`; and later, too, but only
  /// most of those that waited for that.
  std::optional<Hold> IsOld(Clock::duration waited, TimePoint now, const Turn* turn = nullptr);

  /// Whether a call whose message is still on its way had better be refused, because it would wait for as
  /// long as makes one old, and is as early. It counts, if so.
  std::optional<Hold> WillBeOld(TimePoint now, const Turn* turn = nullptr);

  /// Whether a call whose message is still on its way is refused, whoever was asked: while there are too
  /// many, or were lately, and it would wait for half of `late`; half as many as can be done at most. It
  /// counts, either way. While there are not, but were, for twice `late`: callers who are many wait as long.
  std::optional<Hold> Refuses(TimePoint now, const Turn* turn = nullptr);

  /// A call came whose connection was asked to hold back before its message was here: it was no Passage.
  void CountAsked() { came_.fetch_add(1, std::memory_order_relaxed); }

  /// Of the calls that come those that may: 1 unless there are too many.
  double share() const { return share_.load(std::memory_order_relaxed); }

 private:
  bool IsSpared(const Turn* turn) const { return turn != nullptr && turns_.IsOfFew(*turn); }

  // Often enough to see growth before it is long, and not so often that a few calls are taken for it; more
  // often once it is known, while light calls take turns, for one too many that sends is soon felt.
  static constexpr std::chrono::milliseconds kLook{5}, kLookOften{2};
  /// Between two looks.
  Clock::duration Interval() const { return crowd_ > 0 && share() < 1 ? kLookOften : kLook; }

  CallsWindow Measure(TimePoint now, double unread) TILEWIRE_REQUIRES(mutex_);
  /// Seconds after which a call that waits is.
  double Old() const;
  /// Whether hardly anything was done since that was last looked at, be it refused.
  bool HardlyDoes(const CallsWindow& now, double rate) TILEWIRE_REQUIRES(mutex_);
  /// Whether nothing waits beside the call that came, and nothing runs: what lay unread may be done by now.
  bool MayRest(TimePoint now) const {
    return waiting_.load(std::memory_order_relaxed) <= 1 && running_.load(std::memory_order_relaxed) == 0 &&
           unread_until_.load(std::memory_order_relaxed) <= now;
  }

  const Clock::duration late_;
  const double crowd_;
  std::atomic<int64_t> came_{0}, done_{0}, waiting_{0}, running_{0};
  std::atomic<int> very_old_{0};   ///< calls that were, since the last one began
  std::atomic<int> dropped_{0};    ///< calls that were refused as old, since the last look
  std::atomic<int> lines_{0};      ///< connections of which calls wait
  std::atomic<bool> idle_{true};   ///< since the last look
  std::atomic<bool> full_{false};  ///< since the last look
  std::atomic<bool> seen_{true};   ///< most of what waits is in lines, not in sockets
  std::atomic<TimePoint> looked_{TimePoint{}};
  std::atomic<double> share_{1};
  std::atomic<TimePoint> since_{TimePoint{}};  ///< when the refusing of old calls last began
  std::atomic<Clock::duration> waits_{Clock::duration{}};
  std::atomic<TimePoint> unread_until_{TimePoint{}};  ///< it takes to do what lay so at the last look
  std::atomic<double> rate_now_{0};                   ///< that can be done; not 0 once there were too many
  std::atomic<int64_t> announced_{0};  ///< since the last look: calls that may send their messages,
  std::atomic<int64_t> refused_{0};    ///< and those that may not
  std::atomic<int> most_coming_{0};    ///< of one connection
  std::atomic<TimePoint> too_many_{TimePoint{}};  ///< when there were, the last time

  Turns turns_;

  Mutex mutex_;
  CallsWindow last_ TILEWIRE_GUARDED_BY(mutex_);
  CallsWindow hardly_ TILEWIRE_GUARDED_BY(mutex_);  ///< done, since whether that was much was last looked at
  int64_t came_then_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< as of the last look
  int64_t begun_then_ TILEWIRE_GUARDED_BY(mutex_) = 0, done_then_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  double unread_then_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  Excess excess_ TILEWIRE_GUARDED_BY(mutex_);
  TimePoint began_ TILEWIRE_GUARDED_BY(mutex_);      ///< it, the last time
  TimePoint well_ TILEWIRE_GUARDED_BY(mutex_);       ///< when no more waited than are to
  TimePoint busy_then_ TILEWIRE_GUARDED_BY(mutex_);  ///< when half of that waited, the last time
  TimePoint stood_ TILEWIRE_GUARDED_BY(mutex_);      ///< when many waited and hardly anything was done
  DoneRate done_rate_ TILEWIRE_GUARDED_BY(mutex_);
  double in_mean_ TILEWIRE_GUARDED_BY(mutex_) = 0;     ///< calls a second that came,
  double sends_mean_ TILEWIRE_GUARDED_BY(mutex_) = 1;  ///< while such a part of them might
  double in_most_ TILEWIRE_GUARDED_BY(mutex_) = 0;     ///< since the share became less than all
};

}  // namespace tilewire::rpc
