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
#include <mutex>

#include "kernels/array/status.h"
#include "server/base/stats.h"
#include "server/base/timing.h"
#include "server/engine/timer.h"

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

/// The right to run; gives its demand back when destroyed, on any thread. Move-only. The Admission outlives
/// it.
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
/// to wait, else on the thread that gives back enough, on the timer's, or in Cancel or Close.
class Admission {
 public:
  using Decision = std::function<void(Result<Ticket>)>;
  using Id = uint64_t;  ///< 0: decided already

  Admission(const AdmissionLimits& limits, Timer* timer);

  /// Refuses at once what can never run (RESOURCE_EXHAUSTED `LIMIT`) and what finds the queue full (`BUSY`).
  /// A waiting request is refused `BUSY` after queue_seconds, DEADLINE_EXCEEDED `DEADLINE` at `deadline`.
  Id Request(Demand demand, TimePoint deadline, Decision decision);
  /// Takes a waiting request out: its decision gets `why`. No-op when it was decided.
  void Cancel(Id id, const Status& why);
  /// Refuses everything that waits and everything to come with `why`.
  void Close(const Status& why);

  /// What may free device memory that nobody waits for: frees some of the bytes asked for, by giving tickets
  /// back, and says whether it did. Asked when only device memory keeps the first of the bulk queue waiting;
  /// without a lock held. Set before the first Request.
  void SetReclaim(std::function<bool(int64_t bytes)> reclaim) { reclaim_ = std::move(reclaim); }
  /// There is more to reclaim than there was: lets in who waits for it. Where BulkWaits() was false there is
  /// no need.
  void Retry();
  bool BulkWaits() const { return bulk_waits_.load() > 0; }

  /// Device bytes that a bulk job may have at most.
  int64_t bulk_device_bytes() const { return bulk_.device_whole; }

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

  Class& ClassOf(const Demand& demand) { return demand.small ? small_ : bulk_; }
  Status NeverFits(Demand* demand) const;
  bool PlaceFor(const Demand& demand) const;
  bool Fits(const Demand& demand) const;
  void Take(const Demand& demand);
  void Release(const Demand& demand);
  Granted Pump();
  /// Device bytes that the first of the bulk queue lacks, when it lacks nothing else; else 0.
  int64_t LackingBytes() const;
  /// Grants what fits now and calls the decisions; `lock` is released meanwhile. One thread at a time does
  /// it; what others give back then is settled by that one.
  void Settle(std::unique_lock<std::mutex>& lock);
  void Expire(Id id);
  /// The waiter of `id` if it still waits, taken out of its queue.
  std::unique_ptr<Waiter> TakeOut(Id id);

  const AdmissionLimits limits_;
  Timer* const timer_;
  mutable std::mutex mutex_;
  Class small_, bulk_;
  int in_flight_ = 0, bulk_in_flight_ = 0;
  const int max_bulk_;
  std::map<Id, std::unique_ptr<Waiter>> waiting_;
  Id last_id_ = 0;
  bool bulk_first_ = false, settling_ = false, again_ = false;
  std::atomic<int> bulk_waits_{0};
  std::function<bool(int64_t bytes)> reclaim_;
  Status closed_;
  uint64_t admitted_ = 0, refused_busy_ = 0, refused_limit_ = 0;
};

}  // namespace tilewire::engine
