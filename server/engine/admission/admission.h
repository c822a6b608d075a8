// Who may run: reserves everything a job needs, in full and atomically, or makes it wait its turn.
//
// Two classes: small requests own a fixed slice of device and staging bytes, so a queue of bulk jobs never
// holds them up; bulk has the rest, and at most three quarters of the places in flight. Within a class owners
// take turns (FairQueue), and none has more in flight than his share of what keeps the machine busy (Shares).
// Whose turn it is may be overtaken by others' requests while it waits for memory, for kOvertakenAtMost;
// requests of one owner never overtake each other.
//
// Who has yet to send what he asks memory for gets an order first, which is a place in that line and no
// memory; he asks for all of it, in one step, once his first bytes have landed (Order, Orders).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/array/status.h"
#include "server/base/executor.h"
#include "server/base/mutex.h"
#include "server/base/stats.h"
#include "server/base/timer.h"
#include "server/base/timing.h"
#include "server/engine/admission/fair_queue.h"
#include "server/engine/admission/orders.h"
#include "server/engine/admission/rate_limits.h"
#include "server/engine/admission/shares.h"
#include "server/engine/admission/waiting_room.h"

namespace tilewire::engine {

/// How the message begins of a refusal because the queue has no place for anybody (BUSY without a field).
inline constexpr std::string_view kQueueFull = "the queue is full:";

/// What one owner has, where that is bounded.
struct OwnUse {
  int count = 0, most = 0;  ///< in flight; 0: no bound
  int64_t bytes = 0;        ///< on the device

  bool HasAll() const { return most > 0 && count >= most; }
};

/// What a job holds from admission to its end. Bytes as the pools round them.
struct Demand {
  bool small = false;
  int64_t device_bytes = 0;
  int64_t pinned_bytes = 0;
  /// That it holds already, of the bulk class, by arrays that it uses: they do not go while it waits.
  int64_t held_bytes = 0;
  bool resident = false;       ///< of an array that stays, so it takes no place in flight
  bool counted = false;        ///< among its owner's in flight
  bool bytes_counted = false;  ///< its device bytes are among its owner's
  std::string owner;           ///< whose share of places and turns it takes
  OwnLimits own;               ///< of that owner, as of now
  /// Admission's alone: what it last found that owner to have, and when, counted in owners it forgot since.
  mutable OwnUse* own_use = nullptr;
  mutable uint64_t own_use_as_of = 0;
};

struct AdmissionLimits {
  int64_t device_bytes = 0;  ///< whole budget, the small slice included
  int64_t pinned_bytes = 0;
  int max_in_flight = 64;
  int queue_length = 256;
  double queue_seconds = 10;
  /// Of each owner; 0: no bound of his own. Who has all his places waits in the queue.
  int max_in_flight_per_identity = 0, queue_length_per_identity = 0;
  int shared_in_flight = 0;  ///< places of each class that its owners share while there are several (Shares)
  Rates rates;               ///< as Charge() looks at
};

/// So long may others' requests pass the one whose turn it is, from when it first had nothing but too little
/// memory against it. After that what is given back gathers until it fits.
inline constexpr std::chrono::seconds kOvertakenAtMost{1};

class Admission;
class Order;

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
  Ticket(Admission* admission, Demand demand) : admission_(admission), demand_(std::move(demand)) {}
  Admission* admission_ = nullptr;
  Demand demand_;
};

/// Thread-safe. Decisions are called exactly once, without a lock held: inside Request when there is no need
/// to wait; those that let a waiting request in by the executor, since what follows (allocations, launches)
/// is no business of the thread that gave enough back, as are refusals of those who make room for somebody
/// else; refusals also on the timer's thread, or in Cancel or Close.
class Admission {
 public:
  using Decision = std::function<void(Result<Ticket>)>;
  using OnOrder = std::function<void(Result<Order>)>;
  using Id = uint64_t;  ///< 0: decided already

  /// Neither may still run anything of this when it goes.
  Admission(const AdmissionLimits& limits, Timer* timer, Executor* executor);

  /// Before a request: counts a call that moves so many bytes of arrays as one of its owner's. BUSY where he
  /// asks for more in a second than he may (RateLimits::Take).
  /// `own` rates are instead of those of AdmissionLimits.
  Status Charge(const std::string& owner, int64_t bytes, const Rates& own = {}) TILEWIRE_EXCLUDES(mutex_);
  /// Refuses at once what can never run (RESOURCE_EXHAUSTED `LIMIT`) and what finds no place in the queue
  /// (`BUSY`): all its owner's are taken, or all places, and nobody has more of them than he. Else it takes
  /// the last place of who has most. A waiting request is refused `BUSY` then, or after queue_seconds,
  /// DEADLINE_EXCEEDED `DEADLINE` at `deadline`.
  Id Request(Demand demand, TimePoint deadline, Decision decision);
  /// The same for who finds that everything is there and nobody waits, which costs less. Nothing where that
  /// is not so, or better looked at by Request(): he has nothing then.
  std::optional<Ticket> AtOnce(Demand* demand);
  /// The same in two steps, for who has yet to send what the memory is for: as many as may be in flight have
  /// an order (Orders). Refused as a request would be that comes now; may wait for the order, as long as for
  /// memory, and wait again once it has landed, but not be refused for want of a place in the queue then.
  Id RequestOrder(Demand demand, TimePoint deadline, OnOrder on_order);
  /// Takes a waiting request out: its decision gets `why`. No-op when it was decided.
  void Cancel(Id id, const Status& why);
  /// Refuses everything that waits and everything to come, also what lands later, with `why`.
  void Close(const Status& why);

  /// What may free device memory that nobody waits for: frees some of the bytes asked for, by giving tickets
  /// back, and says whether it did. Asked when only device memory keeps the first of the bulk queue waiting;
  /// by the executor. Set before the first Request.
  void SetReclaim(std::function<bool(int64_t bytes)> reclaim) { reclaim_ = std::move(reclaim); }
  /// There is more to reclaim than there was: lets in who waits for it. Where BulkWaits() was false there is
  /// no need.
  void Retry();
  bool BulkWaits() const { return bulk_waits_.load() > 0; }
  bool AnybodyWaits() const { return waits_.load() > 0; }

  /// Device bytes that a bulk job may have at most.
  int64_t bulk_device_bytes() const { return bulk_device_whole_; }

  /// Fills budgets, bytes in use, jobs in flight and queued, and the counters of decisions.
  void Snapshot(EngineStats* stats) const;

 private:
  friend class Ticket;
  friend class Order;
  struct Class {
    int64_t device_bytes = 0, pinned_bytes = 0;  ///< free
    int64_t device_whole = 0, pinned_whole = 0;
    FairQueue queue;
    Shares shares;
  };
  struct Waiter {
    Demand demand;
    TimePoint deadline;
    Decision decision;
    OnOrder on_order;      ///< while it waits for an order
    bool ordered = false;  ///< it has one
    Timer::Id timer = 0;
    std::optional<TimePoint> lacks_memory_since;  ///< when it first was its turn but for that
  };
  using Refusal = std::pair<std::function<void(const Status&)>, Status>;
  using Granted = std::list<std::pair<Decision, Demand>>;
  struct Settlement {
    Granted granted;  ///< to be told
    std::list<std::pair<OnOrder, Id>> ordered;
    std::list<Refusal> refused;
    bool reclaim = false;  ///< Reclaim() is to be called
  };

  Class& ClassOf(const Demand& demand) TILEWIRE_REQUIRES(mutex_) { return demand.small ? small_ : bulk_; }
  Status NeverFits(Demand* demand) const TILEWIRE_REQUIRES(mutex_);
  bool PlaceFor(const Demand& demand) TILEWIRE_REQUIRES(mutex_);
  bool Fits(const Demand& demand) TILEWIRE_REQUIRES(mutex_);
  bool HasOwnPlace(const Demand& demand) TILEWIRE_REQUIRES(mutex_);
  /// Why a request is refused that comes now, whether it might wait or not. Else its owner's bytes are taken.
  Status Admissible(Demand* demand) TILEWIRE_REQUIRES(mutex_);
  /// It is to wait or to be let in.
  void Comes(const Demand& demand) TILEWIRE_REQUIRES(mutex_);
  /// Shares as of now: whether somebody has another.
  bool LooksAgain() TILEWIRE_REQUIRES(mutex_);
  /// While somebody waits the timer looks at shares again when they may change though nobody comes or leaves.
  void LookLater() TILEWIRE_REQUIRES(mutex_);
  void LookNow(uint64_t look) TILEWIRE_EXCLUDES(mutex_);
  void Take(Demand* demand) TILEWIRE_REQUIRES(mutex_);
  void LeavesUnserved(const Demand& demand) TILEWIRE_REQUIRES(mutex_);
  int MostInFlight(const Demand& demand) const;
  /// Its owner's bound is what it says; whether that is another than before.
  bool Rebind(const Demand& demand) TILEWIRE_REQUIRES(mutex_);
  /// One more or less of its owner in flight, where these are bounded.
  void CountOwn(Demand* demand) TILEWIRE_REQUIRES(mutex_);
  void UncountOwn(const Demand& demand) TILEWIRE_REQUIRES(mutex_);
  /// Counts its device bytes as its owner's, where these are bounded: RESOURCE_EXHAUSTED `LIMIT` where they
  /// never fit his bound, `BUSY` where what he has leaves no room.
  Status TakeOwnBytes(Demand* demand) TILEWIRE_REQUIRES(mutex_);
  void ReturnOwnBytes(const Demand& demand) TILEWIRE_REQUIRES(mutex_);
  /// What its owner has; null where that was never bounded. Remembered by the demand while no owner is
  /// forgotten.
  OwnUse* OwnOf(const Demand& demand) TILEWIRE_REQUIRES(mutex_);
  /// The same, bounded as it says from now on.
  OwnUse* MakeOwn(const Demand& demand) TILEWIRE_REQUIRES(mutex_);
  /// Where he has nothing and nothing of his waits, and there are many.
  void ForgetOwn(const std::string& owner) TILEWIRE_REQUIRES(mutex_);
  /// By his own bound and by his share.
  void HoldOrResume(const std::string& owner) TILEWIRE_REQUIRES(mutex_);
  void HoldOrResume(const Shares::Changed& owners) TILEWIRE_REQUIRES(mutex_);
  void Release(const Demand& demand) TILEWIRE_EXCLUDES(mutex_);
  /// Takes what fits now for those who wait.
  void Settle(Settlement* settlement) TILEWIRE_REQUIRES(mutex_);
  Granted Pump() TILEWIRE_REQUIRES(mutex_);
  /// Gives orders to those who wait for one, as far as there are places.
  void GiveOrders(Settlement* settlement) TILEWIRE_REQUIRES(mutex_);
  /// Who of a class that waits is let in now; 0: nobody.
  Id Next(Class* c) TILEWIRE_REQUIRES(mutex_);
  /// A place in the queue for this, somebody else's where all are taken: who has to go is in `settlement`.
  Status MakePlace(const Demand& demand, Settlement* settlement) TILEWIRE_REQUIRES(mutex_);
  void Wait(Id id, std::unique_ptr<Waiter> waiter) TILEWIRE_REQUIRES(mutex_);
  /// Somebody else may be let in than who waits already.
  bool SomebodyNext() TILEWIRE_REQUIRES(mutex_);
  void Bind(Id id, Decision decision) TILEWIRE_EXCLUDES(mutex_);
  void Land(Id id) TILEWIRE_EXCLUDES(mutex_);
  /// Its own bytes, and its order, are others' again.
  void LeavesOpen(const Waiter& waiter) TILEWIRE_REQUIRES(mutex_);
  /// Tells that waiter.
  static void Refuse(const Waiter& waiter, const Status& why);
  /// Device bytes that the first of the bulk queue lacks, when it lacks nothing else; else 0.
  int64_t LackingBytes() TILEWIRE_REQUIRES(mutex_);
  /// Has the executor do what a settlement leaves to be done, if anything.
  void Finish(Settlement settlement) TILEWIRE_EXCLUDES(mutex_);
  /// On the executor.
  void Reclaim() TILEWIRE_EXCLUDES(mutex_);
  void Expire(Id id);
  /// The waiter of `id` if it still waits, taken out of its queue, where it was `served` or not. Who has an
  /// order that has not landed waits for nothing.
  std::unique_ptr<Waiter> TakeOut(Id id, bool served) TILEWIRE_REQUIRES(mutex_);

  const AdmissionLimits limits_;
  Timer* const timer_;
  Executor* const executor_;
  mutable Mutex mutex_;
  Class small_ TILEWIRE_GUARDED_BY(mutex_), bulk_ TILEWIRE_GUARDED_BY(mutex_);
  int in_flight_ TILEWIRE_GUARDED_BY(mutex_) = 0, bulk_in_flight_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  const int max_bulk_;
  int64_t bulk_device_whole_ = 0;  ///< constant
  RateLimits rates_;
  std::map<Id, std::unique_ptr<Waiter>> waiting_ TILEWIRE_GUARDED_BY(mutex_);
  WaitingRoom room_ TILEWIRE_GUARDED_BY(mutex_);
  Orders orders_ TILEWIRE_GUARDED_BY(mutex_);
  std::map<Id, std::unique_ptr<Waiter>> open_ TILEWIRE_GUARDED_BY(mutex_);  ///< with an order, not landed
  std::map<std::string, OwnUse> own_ TILEWIRE_GUARDED_BY(mutex_);
  uint64_t own_forgotten_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  Id last_id_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  bool bulk_first_ TILEWIRE_GUARDED_BY(mutex_) = false;
  Timer::Id look_ TILEWIRE_GUARDED_BY(mutex_) = 0;     ///< LookNow() is on its way; only while somebody waits
  uint64_t looks_ TILEWIRE_GUARDED_BY(mutex_) = 0;     ///< which of them that is
  bool reclaims_ TILEWIRE_GUARDED_BY(mutex_) = false;  ///< Reclaim() is on its way
  std::atomic<int> bulk_waits_{0}, waits_{0};
  std::function<bool(int64_t bytes)> reclaim_;
  Status closed_ TILEWIRE_GUARDED_BY(mutex_);
  uint64_t admitted_ TILEWIRE_GUARDED_BY(mutex_) = 0, refused_busy_ TILEWIRE_GUARDED_BY(mutex_) = 0,
                     refused_limit_ TILEWIRE_GUARDED_BY(mutex_) = 0;
};

/// A place in the line for memory, and none of it. Given back when destroyed, on any thread. Move-only. The
/// Admission outlives it.
class Order {
 public:
  Order() = default;
  Order(Order&& other) noexcept
      : admission_(std::exchange(other.admission_, nullptr)), id_(std::exchange(other.id_, 0)) {}
  Order& operator=(Order&& other) = delete;
  ~Order();
  /// Before Land(): what is called, once, with the right to run, or why there is none; maybe at once. Not
  /// where the order goes before.
  void Bind(Admission::Decision decision) const { admission_->Bind(id_, std::move(decision)); }
  /// The first bytes are here: asks for the whole demand, in the order in which orders were given. The
  /// decision may come before this returns.
  void Land() const { admission_->Land(id_); }

 private:
  friend class Admission;
  Order(Admission* admission, Admission::Id id) : admission_(admission), id_(id) {}
  Admission* admission_ = nullptr;
  Admission::Id id_ = 0;
};

}  // namespace tilewire::engine
