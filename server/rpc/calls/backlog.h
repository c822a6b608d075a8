// How far behind a server is with unary calls, and which of them it had better refuse at once.
#pragma once

#include <array>
#include <atomic>
#include <climits>
#include <map>
#include <optional>
#include <string>

#include "server/base/mutex.h"
#include "server/base/timing.h"

namespace tilewire::rpc {

/// Of small jobs and of bulk ones, which do not wait for each other: each has places in flight of its own.
enum class JobClass : uint8_t { kSmall, kBulk };

/// A call that comes while as many wait as run would wait for as long as it then takes, and longer with every
/// further one (Little's law). So beyond that, and where the wait is longer than `late`, calls are refused
/// once that has been so for `late`: what comes at once is served. It goes by what comes and goes alone: no
/// timer, and nothing while nobody calls. Thread-safe; times are the caller's.
class Backlog {
 public:
  /// `late` 0: nobody is refused for it. `queue_length`: of calls that may wait, the engine's.
  Backlog(Clock::duration late, int queue_length)
      : late_(late), nearly_full_(queue_length < kLongQueue ? INT_MAX : queue_length * 7 / 8) {}
  Clock::duration late() const { return late_; }

  /// A call on its way through the queue. Used by one thread at a time; `backlog` outlives it.
  class Place {
   public:
    Place(Backlog* backlog, JobClass job, std::string owner, TimePoint now);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    /// It waits no longer, but runs until it ends.
    void Admitted(TimePoint now);

   private:
    void Leaves() TILEWIRE_REQUIRES(backlog_->mutex_);

    Backlog* const backlog_;
    const JobClass job_;
    const std::string owner_;
    const TimePoint came_;
    bool told_ = false;  ///< whose it is, which is of no interest for one that nobody waits beside
    bool runs_ = false;
  };

  struct Refusal {
    Clock::duration waits{};  ///< calls like it, before they begin
    Clock::duration hold{};   ///< how long it had better not come again
    bool others = false;      ///< nor others like it of its connection
  };
  /// Whether a call that comes now, after it `waited` for a thread, is refused. Either because the server is
  /// behind with its class, and its owner has no smaller share of those that wait than others; or so that its
  /// client holds others back, too: where calls have waited longer than `late` for half as long, or the queue
  /// has been nearly full. That is one call of a connection in the time it is asked to hold back, because
  /// refusing a small one costs hardly less than serving it. `told`: until when its connection was asked to.
  std::optional<Refusal> Refuses(JobClass job, const std::string& owner, Clock::duration waited,
                                 TimePoint now, std::atomic<TimePoint>* told);
  /// The queue had no place for a call: what to tell its client, where that is because of others like it, and
  /// its connection was not told.
  std::optional<Refusal> Full(JobClass job, TimePoint now, std::atomic<TimePoint>* told);

 private:
  static constexpr int kLongQueue = 16;  ///< a shorter one is nearly full by a call or two
  static constexpr TimePoint kNever = TimePoint::max();
  struct Queue {
    std::map<std::string, int> waiting;  ///< of owners who have any
    int waits = 0, runs = 0;
    Clock::duration waited{};        ///< by the last one that was admitted
    Clock::duration gap{};           ///< between admissions while others wait
    TimePoint admitted, late, well;  ///< when that last was so
    bool crowded = false;            ///< others waited at the last admission
    bool behind = false;             ///< refuses
    TimePoint asks_since = kNever;   ///< others are asked to hold back
  };
  bool IsBehind(Queue* queue, const std::string& owner, TimePoint now) TILEWIRE_REQUIRES(mutex_);
  /// Whether a connection is asked to hold back, `behind` after that became necessary: not if it was already.
  static bool Asks(Refusal* refusal, Clock::duration behind, TimePoint now, std::atomic<TimePoint>* told);
  /// Since when others are asked to hold back; `now` or later: they are not.
  TimePoint AsksSince(Queue* queue, Clock::duration waited, TimePoint now) TILEWIRE_REQUIRES(mutex_);
  Queue& QueueOf(JobClass job) TILEWIRE_REQUIRES(mutex_) { return queues_[static_cast<size_t>(job)]; }

  const Clock::duration late_;
  const int nearly_full_;
  Mutex mutex_;
  std::array<Queue, 2> queues_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire::rpc
