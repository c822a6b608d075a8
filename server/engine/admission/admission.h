// Who may run: reserves everything a job needs, in full and atomically, or makes it wait its turn.
//
// Two FIFO classes without overtaking inside a class. Small requests own a fixed slice of device and staging
// bytes, so a queue of bulk jobs never holds them up; bulk has the rest, and at most three quarters of the
// places in flight.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>

#include "kernels/array/status.h"
#include "server/base/executor.h"
#include "server/base/mutex.h"
#include "server/base/stats.h"
#include "server/base/timer.h"
#include "server/base/timing.h"

namespace tilewire::engine {

/// What a job holds from admission to its end. Bytes as the pools round them.
struct Demand {
  bool small = false;
  int64_t device_bytes = 0;
  int64_t pinned_bytes = 0;
  /// That it holds already, of the bulk class, by arrays that it uses: they do not go while it waits.
  int64_t held_bytes = 0;
  bool resident = false;  ///< of an array that stays, so it takes no place in flight
};

struct AdmissionLimits {
  int64_t device_bytes = 0;  ///< whole budget, the small slice included
  int64_t pinned_bytes = 0;
  int max_in_flight = 64;
  int queue_length = 256;
  double queue_seconds = 10;
};

class Admission;

/// The right to run; gives its demand back when destroyed, on any thread: whom that lets in is told elsewhere
/// (see Admission). Move-only. The Admission outlives it.
class Ticket {
 public:
  Ticket() = default;
  Ticket(Ticket&& other) noexcept { *this = std::move(other); }
  Ticket& operator=(Ticket&& other) noexcept;
  ~Ticket();
  /// A ticket for `device_bytes` of these, which lives on by itself, without a place in flight.
  Ticket Split(int64_t device_bytes);

 private:
  friend class Admission;
  Ticket(Admission* admission, Demand demand) : admission_(admission), demand_(demand) {}
  Admission* admission_ = nullptr;
  Demand demand_;
};

/// Thread-safe. Decisions are called exactly once, without a lock held: inside Request when there is no need
/// to wait; those that let a waiting request in by the executor, since what follows (allocations, launches)
/// is no business of the thread that gave enough back; refusals also on the timer's thread, or in Cancel or
/// Close.
class Admission {
 public:
  using Decision = std::function<void(Result<Ticket>)>;
  using Id = uint64_t;  ///< 0: decided already

  /// Neither may still run anything of this when it goes.
  Admission(const AdmissionLimits& limits, Timer* timer, Executor* executor);

  /// Refuses at once what can never run (RESOURCE_EXHAUSTED `LIMIT`) and what finds the queue full (`BUSY`).
  /// A waiting request is refused `BUSY` after queue_seconds, DEADLINE_EXCEEDED `DEADLINE` at `deadline`.
  Id Request(Demand demand, TimePoint deadline, Decision decision);
  /// Takes a waiting request out: its decision gets `why`. No-op when it was decided.
  void Cancel(Id id, const Status& why);
  /// Refuses everything that waits and everything to come with `why`.
  void Close(const Status& why);

  /// What may free device memory that nobody waits for: frees some of the bytes asked for, by giving tickets
  /// back, and says whether it did. Asked when only device memory keeps the first of the bulk queue waiting;
  /// by the executor. Set before the first Request.
  void SetReclaim(std::function<bool(int64_t bytes)> reclaim) { reclaim_ = std::move(reclaim); }
  /// There is more to reclaim than there was: lets in who waits for it. Where BulkWaits() was false there is
  /// no need.
  void Retry();
  bool BulkWaits() const { return bulk_waits_.load() > 0; }

  /// Device bytes that a bulk job may have at most.
  int64_t bulk_device_bytes() const { return bulk_device_whole_; }

  /// Fills budgets, bytes in use, jobs in flight and queued, and the counters of decisions.
  void Snapshot(EngineStats* stats) const;

 private:
  friend class Ticket;
  struct Class {
    int64_t device_bytes = 0, pinned_bytes = 0;  ///< free
    int64_t device_whole = 0, pinned_whole = 0;
    std::list<Id> queue;
  };
  struct Waiter {
    Demand demand;
    TimePoint deadline;
    Decision decision;
    Timer::Id timer = 0;
    std::list<Id>::iterator place;
  };
  using Granted = std::list<std::pair<Decision, Demand>>;
  struct Settlement {
    Granted granted;       ///< to be told
    bool reclaim = false;  ///< Reclaim() is to be called
  };

  Class& ClassOf(const Demand& demand) TILEWIRE_REQUIRES(mutex_) { return demand.small ? small_ : bulk_; }
  Status NeverFits(Demand* demand) const TILEWIRE_REQUIRES(mutex_);
  bool PlaceFor(const Demand& demand) const TILEWIRE_REQUIRES(mutex_);
  bool Fits(const Demand& demand) const TILEWIRE_REQUIRES(mutex_);
  void Take(const Demand& demand) TILEWIRE_REQUIRES(mutex_);
  void Release(const Demand& demand) TILEWIRE_EXCLUDES(mutex_);
  /// Takes what fits now for those who wait.
  Settlement Settle() TILEWIRE_REQUIRES(mutex_);
  Granted Pump() TILEWIRE_REQUIRES(mutex_);
  /// Device bytes that the first of the bulk queue lacks, when it lacks nothing else; else 0.
  int64_t LackingBytes() const TILEWIRE_REQUIRES(mutex_);
  /// Has the executor do what a settlement leaves to be done, if anything.
  void Finish(Settlement settlement) TILEWIRE_EXCLUDES(mutex_);
  /// On the executor.
  void Reclaim() TILEWIRE_EXCLUDES(mutex_);
  void Expire(Id id);
  /// The waiter of `id` if it still waits, taken out of its queue.
  std::unique_ptr<Waiter> TakeOut(Id id) TILEWIRE_REQUIRES(mutex_);

  const AdmissionLimits limits_;
  Timer* const timer_;
  Executor* const executor_;
  mutable Mutex mutex_;
  Class small_ TILEWIRE_GUARDED_BY(mutex_), bulk_ TILEWIRE_GUARDED_BY(mutex_);
  int in_flight_ TILEWIRE_GUARDED_BY(mutex_) = 0, bulk_in_flight_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  const int max_bulk_;
  int64_t bulk_device_whole_ = 0;  ///< constant
  std::map<Id, std::unique_ptr<Waiter>> waiting_ TILEWIRE_GUARDED_BY(mutex_);
  Id last_id_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  bool bulk_first_ TILEWIRE_GUARDED_BY(mutex_) = false;
  bool reclaims_ TILEWIRE_GUARDED_BY(mutex_) = false;  ///< Reclaim() is on its way
  std::atomic<int> bulk_waits_{0};
  std::function<bool(int64_t bytes)> reclaim_;
  Status closed_ TILEWIRE_GUARDED_BY(mutex_);
  uint64_t admitted_ TILEWIRE_GUARDED_BY(mutex_) = 0, refused_busy_ TILEWIRE_GUARDED_BY(mutex_) = 0,
                     refused_limit_ TILEWIRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace tilewire::engine
