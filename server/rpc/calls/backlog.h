// How far behind a server is with unary calls, and which of them it had better refuse at once.
#pragma once

#include <array>
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
/// once that has been so for `late`: what comes at once is served, and so are small ones of which there are
/// fewer than places. It goes by what comes and goes alone: no timer, and nothing while nobody calls.
/// Thread-safe; times are the caller's.
class Backlog {
 public:
  /// 0: nobody is refused for it.
  explicit Backlog(Clock::duration late) : late_(late) {}
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

  /// Whether a call that comes now is refused: the server is behind with its class, and its owner has no
  /// smaller share of those that wait than others. For how long calls like it waited before they began.
  /// `places`: that there are for calls of its owner.
  std::optional<Clock::duration> Refuses(JobClass job, const std::string& owner, TimePoint now,
                                         int places = 0);

 private:
  struct Queue {
    std::map<std::string, int> waiting;  ///< of owners who have any
    int waits = 0, runs = 0;
    Clock::duration waited{};        ///< by the last one that was admitted
    Clock::duration gap{};           ///< between admissions while others wait
    TimePoint admitted, late, well;  ///< when that last was so
    bool crowded = false;            ///< others waited at the last admission
    bool behind = false;             ///< refuses
  };
  Queue& QueueOf(JobClass job) TILEWIRE_REQUIRES(mutex_) { return queues_[static_cast<size_t>(job)]; }

  const Clock::duration late_;
  Mutex mutex_;
  std::array<Queue, 2> queues_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire::rpc
