// What the stores have in common: things that stay, each with an owner, an id that nobody can guess, a share
// of the quotas and a time to live.
//
//   MakeRoomLocked, TakeLocked ──(the thing is made)──> AddLocked ──> Use ──> jobs
//                                                           └ ForgetLocked, expiry, eviction, Close
//
// What is forgotten cannot be used any more at once; what it holds, and its share of the quotas, go with the
// last job that uses it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/base/timer.h"
#include "server/engine/stores/owned.h"
#include "server/engine/stores/random_id.h"

namespace tilewire::engine {

/// Limits of a store where the operator names none: `bytes` of all, as much of each identity.
template <typename Limits>
Limits CompleteLimits(Limits limits, int64_t bytes) {
  if (limits.bytes <= 0) limits.bytes = bytes;
  if (limits.bytes_per_identity <= 0) limits.bytes_per_identity = limits.bytes;
  limits.longest_seconds = std::max(limits.longest_seconds, limits.seconds);
  return limits;
}

/// `Entry` is Owned, shared from this, and `Entry::Shown`, which is what users get: that says whether it is
/// all there (`Check()`, asked at each use, without a lock). The entry says `kWords`; `kUsesPutEndOff`,
/// whether its time to live begins anew with each use; and what `Facts` it has of its own (`facts()`).
/// `Entry::Limits` has bytes, bytes_per_identity, count_per_identity, seconds and longest_seconds.
///
/// Thread-safe. Outlives uses; no timer call may be left when it goes.
template <typename Entry>
class OwnedStore {
 public:
  using Facts = typename Entry::Facts;
  using Limits = typename Entry::Limits;
  using Usage = std::shared_ptr<const typename Entry::Shown>;

  OwnedStore(const OwnedStore&) = delete;
  OwnedStore& operator=(const OwnedStore&) = delete;

  /// NOT_FOUND `kWords.reason`: none of this identity's; `WRONG_INSTANCE`: of another server; else as
  /// Shown::Check. `field` is to blame.
  Result<Usage> Use(const std::string& id, const std::string& identity, const std::string& field) {
    Usage use;
    {
      const MutexLock lock(mutex_);
      TILEWIRE_ASSIGN_OR_RETURN(Entry* const entry, FindLocked(id, identity, field));
      use = UseLocked(entry);
    }
    TILEWIRE_RETURN_IF_ERROR(use->Check());
    return use;
  }

  /// At most `count` of what the identity has, from `from` (OwnedPage::next, or 0) on.
  OwnedPage<Facts> List(const std::string& identity, uint64_t from, size_t count,
                        const OwnQuota& own = {}) const {
    OwnedPage<Facts> page{.quota_bytes = OwnBytes(own).most};
    const MutexLock lock(mutex_);
    const auto owner = owners_.find(identity);
    if (owner == owners_.end()) return page;
    page.held_bytes = owner->second.bytes;
    const auto& entries = owner->second.entries;
    for (auto next = entries.lower_bound(from); next != entries.end(); ++next) {
      if (ExpiredLocked(*next->second, timer_->Now())) continue;
      if (page.items.size() == count) {
        page.next = next->first;
        break;
      }
      page.items.push_back(FactsLocked(*next->second));
    }
    return page;
  }

  /// Forgets everything, and refuses what comes with `why`.
  void Close(const Status& why) {
    Entries freed;
    const MutexLock lock(mutex_);
    if (closed_.ok()) closed_ = why;
    while (!entries_.empty()) ForgetLocked(entries_.begin()->second, &freed);
  }

  const Limits& limits() const { return limits_; }
  /// What an identity may hold with such a rule; never more than all may.
  OwnMost OwnBytes(const OwnQuota& own) const {
    return RuleOr(std::min(own.bytes, limits_.bytes), limits_.bytes_per_identity);
  }

 protected:
  using EntryPtr = std::shared_ptr<Entry>;
  using Entries = std::vector<EntryPtr>;  ///< dropped once the lock is gone

  /// `on_idle` is called, without a lock held, when something evictable is no longer in use.
  OwnedStore(std::string instance, const Limits& limits, Timer* timer, std::function<void()> on_idle)
      : instance_(std::move(instance)), limits_(limits), timer_(timer), on_idle_(std::move(on_idle)) {}
  ~OwnedStore() = default;

  std::string NewId() const { return instance_ + "-" + RandomHex(); }
  Clock::duration KeepFor(double seconds) const {
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(seconds == 0 ? limits_.seconds : seconds));
  }

  /// Room for `added` entries of together `bytes` beside `there` others, of which `most` may be: idle
  /// evictable ones go for it, those not used for longest first. BUSY, and nothing is gone, where that would
  /// not do. `own`: what the identity may have.
  Status MakeRoomLocked(const std::string& identity, int64_t bytes, size_t added, size_t there, int64_t most,
                        const OwnQuota& own, Entries* freed) TILEWIRE_REQUIRES(mutex_) {
    const auto owner = owners_.find(identity);
    const int64_t owned = owner == owners_.end() ? 0 : owner->second.bytes;
    // What is over each limit; also of their number, since what is kept of each has no other bound.
    const OwnMost own_bytes = OwnBytes(own),
                  own_count = RuleOr(own.count, limits_.count_per_identity > 0 ? limits_.count_per_identity
                                                                               : MostOfOne(identity, most));
    int64_t own_over = owned + bytes - own_bytes.most, over = bytes_ + bytes - limits_.bytes;
    int64_t number_over = static_cast<int64_t>(there + added) - most;
    const int64_t own_there = owner == owners_.end() ? 0 : static_cast<int64_t>(owner->second.held);
    int64_t own_number_over = own_there + static_cast<int64_t>(added) - own_count.most;
    if (own_over <= 0 && over <= 0 && number_over <= 0 && own_number_over <= 0) return {};
    int64_t own_idle = 0, idle = 0, own_idle_number = 0;
    for (const auto& [when, other] : idle_) {
      idle += other->quota_bytes;
      if (other->identity != identity) continue;
      own_idle += other->quota_bytes;
      ++own_idle_number;
    }
    const StoreWords& words = Entry::kWords;
    if (own_over > own_idle) return OwnQuotaFull(words, owned, bytes, own_bytes);
    if (over > idle) return QuotaFull(words, bytes_, bytes, limits_.bytes);
    if (number_over > static_cast<int64_t>(idle_.size())) return TooMany(words, there, most);
    if (own_number_over > own_idle_number)
      return TooManyOwn(words, static_cast<size_t>(own_there), own_count);
    for (const bool mine : {true, false}) {
      for (auto next = idle_.begin(); next != idle_.end();) {
        Entry* const other = (next++)->second;
        if (mine ? own_over <= 0 && own_number_over <= 0 : over <= 0 && number_over <= 0) break;
        if (mine && other->identity != identity) continue;
        if (other->identity == identity) {
          own_over -= other->quota_bytes;
          --own_number_over;
        }
        over -= other->quota_bytes;
        --number_over;
        EvictLocked(other, freed);
      }
    }
    return {};
  }
  /// The entry's share of the quotas, from before it is added until it is released.
  void TakeLocked(const Entry& entry) TILEWIRE_REQUIRES(mutex_) {
    Owner& owner = owners_[entry.identity];
    owner.bytes += entry.quota_bytes;
    ++owner.held;
    bytes_ += entry.quota_bytes;
    ++held_;
  }
  void ReturnLocked(const Entry& entry) TILEWIRE_REQUIRES(mutex_) {
    bytes_ -= entry.quota_bytes;
    --held_;
    const auto owner = owners_.find(entry.identity);
    owner->second.bytes -= entry.quota_bytes;
    if (--owner->second.held == 0) owners_.erase(owner);
  }
  /// From now on it is there.
  void AddLocked(const EntryPtr& entry) TILEWIRE_REQUIRES(mutex_) {
    entry->number = ++last_number_;
    entry->added = entry->last_used = timer_->Now();
    entry->timer = timer_->At(entry->added + entry->keep, [this, number = entry->number] { Expire(number); });
    Owner& owner = owners_[entry->identity];
    entry->own_number = ++owner.last_number;
    owner.entries.emplace(entry->own_number, entry);
    entries_.emplace(entry->number, entry.get());
    by_id_.emplace(entry->id(), entry.get());
    if (entry->evictable) idle_.emplace(std::pair(entry->last_used, entry->number), entry.get());
  }

  /// Fails as Use().
  Result<Entry*> FindLocked(const std::string& id, const std::string& identity, const std::string& field)
      TILEWIRE_REQUIRES(mutex_) {
    TILEWIRE_RETURN_IF_ERROR(CheckId(Entry::kWords, id, instance_, field));
    const auto found = by_id_.find(id);
    if (found == by_id_.end() || found->second->identity != identity ||
        ExpiredLocked(*found->second, timer_->Now()))  // its timer is on its way
      return Fail(NotFound(Entry::kWords, id, field, false));
    return found->second;
  }
  Usage UseLocked(Entry* entry) TILEWIRE_REQUIRES(mutex_) {
    if (entry->users++ == 0) idle_.erase({entry->last_used, entry->number});
    return Usage(entry, [this, kept = entry->shared_from_this()](const void*) { Unuse(kept); });
  }
  /// Takes it out of every index; it is released once nobody uses it.
  void ForgetLocked(Entry* entry, Entries* freed) TILEWIRE_REQUIRES(mutex_) {
    auto& mine = owners_.find(entry->identity)->second.entries;
    EntryPtr kept = std::move(mine.extract(entry->own_number).mapped());
    entries_.erase(entry->number);
    by_id_.erase(entry->id());
    idle_.erase({entry->last_used, entry->number});
    timer_->Cancel(entry->timer);
    entry->forgotten = true;
    ForgottenLocked(*entry);
    if (entry->users == 0) ReleaseLocked(std::move(kept), freed);
  }
  void EvictLocked(Entry* entry, Entries* freed) TILEWIRE_REQUIRES(mutex_) {
    ++evicted_;
    ForgetLocked(entry, freed);
  }
  bool ExpiredLocked(const Entry& entry, TimePoint now) const TILEWIRE_REQUIRES(mutex_) {
    return EndLocked(entry, now) <= now;
  }
  Facts FactsLocked(const Entry& entry) const TILEWIRE_REQUIRES(mutex_) {
    const TimePoint now = timer_->Now();
    Facts facts = entry.facts();
    facts.id = entry.id();
    facts.age_seconds = Seconds(now - entry.added);
    facts.expires_seconds = Seconds(EndLocked(entry, now) - now);
    facts.idle_seconds = entry.users > 0 ? 0 : Seconds(now - entry.last_used);
    facts.users = entry.users;
    return facts;
  }

  /// Nobody can find it any more; it may still be in use.
  virtual void ForgottenLocked(const Entry& entry) TILEWIRE_REQUIRES(mutex_) { (void)entry; }
  /// Nobody uses it any more either: its share of the quotas goes back, now or when what it holds is gone.
  virtual void ReleaseLocked(EntryPtr entry, Entries* freed) TILEWIRE_REQUIRES(mutex_) = 0;

  const std::string instance_;
  const Limits limits_;
  Timer* const timer_;
  const std::function<void()> on_idle_;
  mutable Mutex mutex_;
  Status closed_ TILEWIRE_GUARDED_BY(mutex_);
  std::map<uint64_t, Entry*> entries_ TILEWIRE_GUARDED_BY(mutex_);
  /// Evictable and unused, by their last use.
  std::map<std::pair<TimePoint, uint64_t>, Entry*> idle_ TILEWIRE_GUARDED_BY(mutex_);
  // Added, on the way there, and forgotten but not released.
  int64_t bytes_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  size_t held_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t evicted_ TILEWIRE_GUARDED_BY(mutex_) = 0, expired_ TILEWIRE_GUARDED_BY(mutex_) = 0;

 private:
  struct Owner {
    int64_t bytes = 0;  ///< as bytes_ and held_
    size_t held = 0;
    uint64_t last_number = 0;
    std::map<uint64_t, EntryPtr> entries;  ///< by own_number
  };

  static double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }
  /// When it expires, were nobody to use it from `now` on.
  TimePoint EndLocked(const Entry& entry, TimePoint now) const TILEWIRE_REQUIRES(mutex_) {
    if (!Entry::kUsesPutEndOff) return entry.added + entry.keep;
    return (entry.users > 0 ? now : entry.last_used) + entry.keep;
  }
  void Unuse(const EntryPtr& entry) {
    Entries freed;
    {
      const MutexLock lock(mutex_);
      if (--entry->users > 0) return;
      entry->last_used = timer_->Now();
      if (entry->forgotten) return ReleaseLocked(entry, &freed);
      if (!entry->evictable) return;
      idle_.emplace(std::pair(entry->last_used, entry->number), entry.get());
    }
    on_idle_();
  }
  /// Uses move the end without touching the timer: this looks again when it comes.
  void Expire(uint64_t number) {
    Entries freed;
    const MutexLock lock(mutex_);
    const auto found = entries_.find(number);
    if (found == entries_.end()) return;
    Entry* const entry = found->second;
    const TimePoint now = timer_->Now();
    if (!ExpiredLocked(*entry, now)) {
      entry->timer = timer_->At(EndLocked(*entry, now), [this, number] { Expire(number); });
      return;
    }
    ++expired_;
    ForgetLocked(entry, &freed);
  }

  uint64_t last_number_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< things are numbered as they are added
  std::map<std::string, Owner> owners_ TILEWIRE_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Entry*> by_id_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire::engine
