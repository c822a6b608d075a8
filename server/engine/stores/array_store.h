// Arrays that stay on the device, and how much of its memory they may take.
//
//   Reserve ──quota──> Reservation ──(a job brings the bytes)──Commit──> arrays ──Use──> jobs
//                                                                          └ Delete, expiry, eviction, Close
//
// A job's arrays are reserved and committed together, all or none; from then on each is by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/array/shape.h"
#include "kernels/array/status.h"
#include "server/base/stats.h"
#include "server/engine/admission/admission.h"
#include "server/engine/device/memory.h"
#include "server/engine/stores/owned_store.h"

namespace tilewire::engine {

struct StoreLimits {
  int64_t bytes = 0;  ///< of all arrays, as the pools round them; 0: half of what bulk jobs may have
  int64_t bytes_per_identity = 0;  ///< 0: the same
  int64_t count_per_identity = 0;  ///< 0: MostOfOne()
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
  /// Whether it is all there, which it always is.
  Status Check() const { return {}; }

 protected:
  ResidentArray(std::string id, const ArraySpec& spec) : id_(std::move(id)), spec_(spec) {}
  const std::string id_;
  const ArraySpec spec_;
  Ticket ticket_;  // before the memory, so that it is given back after it
  Memory memory_;
};
/// The right to use an array: while it is there, so is the array's memory. Dropping the last one may free
/// that, and let in who waits for it.
using ArrayUse = std::shared_ptr<const ResidentArray>;

/// What is known of an array.
struct ArrayFacts : OwnedFacts {
  ArraySpec spec;
  int64_t device_bytes = 0;  ///< as the pools round them
  bool evictable = false;
};
using ArrayPage = OwnedPage<ArrayFacts>;

/// An array, or the room for one, in the store.
struct ArrayEntry final : ResidentArray, Owned, std::enable_shared_from_this<ArrayEntry> {
  using Shown = ResidentArray;
  using Facts = ArrayFacts;
  using Limits = StoreLimits;
  static constexpr StoreWords kWords{.one = "array",
                                     .several = "arrays",
                                     .which = "an array that is stored",
                                     .are = "stored",
                                     .reason = "ARRAY",
                                     .told_in = "ArrayResult.array",
                                     .flags = "store",
                                     .count_key = "arrays",
                                     .bytes_key = "array_bytes"};
  static constexpr bool kUsesPutEndOff = false;

  ArrayEntry(std::string id, const ArraySpec& spec) : ResidentArray(std::move(id), spec) {}
  ArrayFacts facts() const { return {{}, spec(), device_bytes(), evictable}; }
  void Fill(Memory memory, Ticket ticket) {
    ticket_ = std::move(ticket);
    memory_ = std::move(memory);
  }
  std::string key;  ///< StoreOptions::key, of a job's later results with what tells them apart
};

class ArrayStore;

/// What an array is made of: its memory, and the right to that.
struct ArrayParts {
  Ticket ticket;  // first, so that it is given back last
  Memory memory;
};

/// Room for the arrays that a job is about to make; given back when destroyed. Move-only.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&&) = default;
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation() { Drop(); }

  explicit operator bool() const { return !entries_.empty(); }
  /// The arrays that were there already under the same key; then there is no room to commit to. Else none.
  const std::vector<ArrayUse>& existing() const { return existing_; }
  /// Of each array; empty without room.
  std::vector<int64_t> device_bytes() const;
  /// The arrays exist from now on, made of `parts`: their ids. Or, under a key that another job used
  /// meanwhile, that job's array, and the parts are freed. INVALID_ARGUMENT when such a one has another spec;
  /// or why the store was closed: then there are none. Once.
  Result<std::vector<std::string>> Commit(std::vector<ArrayParts> parts);

 private:
  friend class ArrayStore;
  void Drop();
  ArrayStore* store_ = nullptr;
  std::vector<std::shared_ptr<ArrayEntry>> entries_;  ///< null: committed
  std::vector<ArrayUse> existing_;
};

/// Thread-safe. Outlives uses and reservations. Memory is freed, and hooks are called, without a lock held.
class ArrayStore final : public OwnedStore<ArrayEntry> {
 public:
  /// `on_idle` is called when an evictable array is no longer in use. No limit may be 0, see
  /// CompleteLimits().
  ArrayStore(std::string instance, const StoreLimits& limits, Timer* timer, std::function<void()> on_idle)
      : OwnedStore(std::move(instance), limits, timer, std::move(on_idle)) {}

  /// Room for arrays, 1 or more, idle evictable ones making it where need be. RESOURCE_EXHAUSTED `LIMIT`:
  /// more than the limits; `BUSY`: for now. INVALID_ARGUMENT: a time over the limit, or a key whose array is
  /// another. The key stands for all of them: where one is there no more, none is taken as there.
  Result<Reservation> Reserve(const std::string& identity, std::span<const ArraySpec> specs,
                              const StoreOptions& options, const OwnQuota& own = {});
  /// Stat, Delete: as Use().
  Result<ArrayFacts> Stat(const std::string& id, const std::string& identity);
  Status Delete(const std::string& id, const std::string& identity);
  /// Evicts idle evictable arrays, those not used for longest first, until `bytes` are free or none is left.
  /// Whether it evicted any.
  bool Reclaim(int64_t bytes);
  /// Fills what concerns arrays.
  void Snapshot(EngineStats* stats) const;

 private:
  friend class Reservation;
  /// The array stored with that key, null where there is none; INVALID_ARGUMENT where its spec is another.
  Result<ArrayEntry*> KeyedLocked(const std::string& identity, const std::string& key, const ArraySpec& spec)
      TILEWIRE_REQUIRES(mutex_);
  /// The same for each of `entries`.
  Result<std::vector<ArrayEntry*>> KeyedLocked(const Entries& entries) TILEWIRE_REQUIRES(mutex_);
  /// As Reservation::Commit; takes the entries unless it fails, but for those where it finds another.
  Result<std::vector<std::string>> Commit(Entries* room, std::vector<ArrayParts> parts);
  void GiveUp(const ArrayEntry& entry);
  void ForgottenLocked(const ArrayEntry& entry) TILEWIRE_REQUIRES(mutex_) override;
  void ReleaseLocked(EntryPtr entry, Entries* freed) TILEWIRE_REQUIRES(mutex_) override;

  /// Idempotency keys, each of an identity.
  std::map<std::pair<std::string, std::string>, ArrayEntry*> keys_ TILEWIRE_GUARDED_BY(mutex_);
  size_t pending_ TILEWIRE_GUARDED_BY(mutex_) = 0;    ///< reservations
  int64_t reserved_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< bytes of these
};

}  // namespace tilewire::engine
