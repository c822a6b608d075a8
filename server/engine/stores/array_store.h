// Arrays that stay on the device: who owns them, how long, and how much memory they may take.
//
//   Reserve ──quota──> Reservation ──(a job brings the bytes)──Commit──> array ──Use──> jobs
//                                                                          └ Delete, expiry, eviction, Close
//
// What is deleted, expired or evicted cannot be used any more at once; its memory, and its share of the
// quotas, go with the last job that uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/array/shape.h"
#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/base/stats.h"
#include "server/base/timer.h"
#include "server/engine/admission/admission.h"
#include "server/engine/device/memory.h"

namespace tilewire::engine {

struct StoreLimits {
  int64_t bytes = 0;  ///< of all arrays, as the pools round them; 0: half of what bulk jobs may have
  int64_t bytes_per_identity = 0;  ///< 0: the same
  double seconds = 3600;           ///< an array's time where the caller names none
  double longest_seconds = 86400;  ///< and the longest that a caller may name
};

/// How an array is to be kept.
struct StoreOptions {
  double seconds = 0;      ///< until it expires; 0: StoreLimits::seconds
  bool evictable = false;  ///< may go earlier, when its memory is needed
  std::string key;         ///< idempotency key; empty: none
};

/// An array on the device. Immutable.
class ResidentArray {
 public:
  ResidentArray(const ResidentArray&) = delete;
  virtual ~ResidentArray() = default;
  const std::string& id() const { return id_; }
  const ArraySpec& spec() const { return spec_; }
  std::byte* data() const { return memory_.data(); }
  int64_t device_bytes() const;  ///< as the pools round them

 protected:
  ResidentArray(std::string id, const ArraySpec& spec, Memory memory, Ticket ticket)
      : id_(std::move(id)), spec_(spec), ticket_(std::move(ticket)), memory_(std::move(memory)) {}
  const std::string id_;
  const ArraySpec spec_;
  Ticket ticket_;  // before the memory, so that it is given back after it
  Memory memory_;
};
/// The right to use an array: while it is there, so is the array's memory. Dropping the last one may free
/// that, and let in who waits for it.
using ArrayUse = std::shared_ptr<const ResidentArray>;

/// What is known of an array.
struct ArrayFacts {
  std::string id;
  ArraySpec spec;
  int64_t device_bytes = 0;  ///< as the pools round them
  bool evictable = false;
  double age_seconds = 0, expires_seconds = 0;  ///< since it was stored, until it expires
  double idle_seconds = 0;                      ///< since its last use ended, or since it was stored
  uint32_t users = 0;
};

struct ArrayPage {
  std::vector<ArrayFacts> arrays;  ///< oldest first
  uint64_t next = 0;               ///< where the next page begins; 0: this was the last
  int64_t stored_bytes = 0, quota_bytes = 0;
};

class ArrayStore;

/// Room for an array that a job is about to make; given back when destroyed. Move-only.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept { *this = std::move(other); }
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation() { Drop(); }

  explicit operator bool() const { return store_ != nullptr; }
  /// The array that was there already under the same key; then there is no room to commit to.
  const ArrayUse& existing() const { return existing_; }
  int64_t device_bytes() const { return bytes_; }
  /// The array exists from now on, in `memory`, of which `ticket` is the right: its id. Or, under a key that
  /// another job used meanwhile, that job's array, and the memory is freed. INVALID_ARGUMENT when that one
  /// has another spec; or why the store was closed. Once.
  Result<std::string> Commit(Memory memory, Ticket ticket);

 private:
  friend class ArrayStore;
  void Drop();
  ArrayStore* store_ = nullptr;
  std::string identity_;
  ArraySpec spec_;
  StoreOptions options_;
  int64_t bytes_ = 0;
  ArrayUse existing_;
};

/// Thread-safe. Outlives uses and reservations. Memory is freed, and hooks are called, without a lock held.
class ArrayStore {
 public:
  /// `on_idle` is called when an evictable array is no longer in use.
  ArrayStore(std::string instance, const StoreLimits& limits, Timer* timer, std::function<void()> on_idle);
  /// No use, reservation or timer call may be left.
  ~ArrayStore() = default;

  /// Room for an array, idle evictable arrays making it where need be. RESOURCE_EXHAUSTED `LIMIT`: more than
  /// the limits; `BUSY`: for now. INVALID_ARGUMENT: a time over the limit, or a key whose array is another.
  Result<Reservation> Reserve(const std::string& identity, const ArraySpec& spec,
                              const StoreOptions& options);
  /// NOT_FOUND `ARRAY`: none of this identity's; `WRONG_INSTANCE`: of another server. `field` is to blame.
  Result<ArrayUse> Use(const std::string& id, const std::string& identity, const std::string& field);
  Result<ArrayFacts> Stat(const std::string& id, const std::string& identity);
  /// At most `count` of the identity's arrays, from `from` (ArrayPage::next, or 0) on.
  ArrayPage List(const std::string& identity, uint64_t from, size_t count);
  Status Delete(const std::string& id, const std::string& identity);
  /// Evicts idle evictable arrays, those not used for longest first, until `bytes` are free or none is left.
  /// Whether it evicted any.
  bool Reclaim(int64_t bytes);
  /// Forgets every array, and refuses what comes with `why`.
  void Close(const Status& why);

  const StoreLimits& limits() const { return limits_; }
  /// Fills what concerns arrays.
  void Snapshot(EngineStats* stats) const;

 private:
  friend class Reservation;
  struct Entry final : ResidentArray, std::enable_shared_from_this<Entry> {
    Entry(std::string id, const ArraySpec& spec, Memory memory, Ticket ticket)
        : ResidentArray(std::move(id), spec, std::move(memory), std::move(ticket)) {}
    uint64_t number = 0;
    std::string identity;
    StoreOptions options;
    TimePoint stored, expires, last_used;
    uint32_t users = 0;
    bool forgotten = false;
    Timer::Id timer = 0;
  };
  struct Owner {
    int64_t bytes = 0;  ///< stored, reserved, and forgotten but still in use
    std::map<uint64_t, std::shared_ptr<Entry>> arrays;
    std::map<std::string, uint64_t> keys;
  };
  using Entries = std::vector<std::shared_ptr<Entry>>;

  Result<Entry*> FindLocked(const std::string& id, const std::string& identity, const std::string& field)
      TILEWIRE_REQUIRES(mutex_);
  /// The array stored with that key, null where there is none; INVALID_ARGUMENT where its spec is another.
  Result<Entry*> KeyedLocked(const std::string& identity, const std::string& key, const ArraySpec& spec)
      TILEWIRE_REQUIRES(mutex_);
  ArrayUse UseLocked(Entry* entry) TILEWIRE_REQUIRES(mutex_);
  void Unuse(const std::shared_ptr<Entry>& entry);
  /// Takes it out of every index; it goes to `freed` where nobody uses it.
  void ForgetLocked(Entry* entry, Entries* freed) TILEWIRE_REQUIRES(mutex_);
  void ReturnBytesLocked(const std::string& identity, int64_t bytes) TILEWIRE_REQUIRES(mutex_);
  Status MakeRoomLocked(const std::string& identity, int64_t bytes, Entries* freed) TILEWIRE_REQUIRES(mutex_);
  void Expire(uint64_t number);
  ArrayFacts FactsLocked(const Entry& entry) const TILEWIRE_REQUIRES(mutex_);

  const std::string instance_;
  const StoreLimits limits_;
  Timer* const timer_;
  const std::function<void()> on_idle_;
  mutable Mutex mutex_;
  Status closed_ TILEWIRE_GUARDED_BY(mutex_);
  uint64_t last_number_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< arrays are numbered as they are stored
  int64_t bytes_ TILEWIRE_GUARDED_BY(mutex_) = 0;         ///< as Owner::bytes, of all
  int64_t reserved_ TILEWIRE_GUARDED_BY(mutex_) = 0;      ///< part of these
  std::map<std::string, Owner> owners_ TILEWIRE_GUARDED_BY(mutex_);
  std::map<uint64_t, Entry*> arrays_ TILEWIRE_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Entry*> by_id_ TILEWIRE_GUARDED_BY(mutex_);
  std::map<std::pair<TimePoint, uint64_t>, Entry*> idle_
      TILEWIRE_GUARDED_BY(mutex_);                  ///< evictable and unused, by their last use
  size_t pending_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< reservations
  uint64_t evicted_ TILEWIRE_GUARDED_BY(mutex_) = 0, expired_ TILEWIRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace tilewire::engine
