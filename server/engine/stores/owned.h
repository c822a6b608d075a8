// What every thing that stays has, whatever it is, and how its store speaks of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/array/status.h"
#include "server/base/timer.h"

namespace tilewire::engine {

/// What is refused BUSY here may be worth another try then.
inline constexpr int64_t kStoreRetryMs = 1000;

/// Guarded by its store's mutex from when it was added.
struct Owned {
  std::string identity;
  int64_t quota_bytes = 0;
  Clock::duration keep{};   ///< time to live
  bool evictable = false;   ///< may go earlier, when its room is needed
  uint64_t number = 0;      ///< among all
  uint64_t own_number = 0;  ///< among its owner's: pages of a list tell it, and so nothing of others
  TimePoint added, last_used;
  uint32_t users = 0;
  bool forgotten = false;
  Timer::Id timer = 0;
};

/// What is told of it.
struct OwnedFacts {
  std::string id;
  double age_seconds = 0;      ///< since it was added
  double expires_seconds = 0;  ///< until it expires, unless a use puts that off
  double idle_seconds = 0;     ///< since its last use ended, or since it was added
  uint32_t users = 0;
};

template <typename Facts>
struct OwnedPage {
  std::vector<Facts> items;                 ///< oldest first
  uint64_t next = 0;                        ///< where the next page begins; 0: this was the last
  int64_t held_bytes = 0, quota_bytes = 0;  ///< of the owner
};

/// What an identity may have that is not as for all others; 0: as for them.
struct OwnQuota {
  int64_t count = 0, bytes = 0;
};

/// A bound of one identity's, and whether its own rule says it rather than a flag.
struct OwnMost {
  int64_t most = 0;
  bool by_rule = false;
};

struct StoreWords {
  const char *one, *several;          ///< "array", "arrays"
  const char* which;                  ///< "an array that is stored"
  const char* are;                    ///< "stored"
  const char* reason;                 ///< of NOT_FOUND
  const char* told_in;                ///< where a client reads an id
  const char* flags;                  ///< X of --X-bytes, --X-bytes-per-identity and --longest-X-seconds
  const char *count_key, *bytes_key;  ///< of a rule of --policy
};

/// INVALID_ARGUMENT for what is too long for an id, NOT_FOUND `WRONG_INSTANCE` for one of another server.
Status CheckId(const StoreWords& words, const std::string& id, const std::string& instance,
               const std::string& field);
Status NotFound(const StoreWords& words, const std::string& id, const std::string& field, bool foreign);
/// INVALID_ARGUMENT for a time to live that is none, or over the limit; 0 stands for the usual one.
Status CheckSeconds(const StoreWords& words, double seconds, double longest, const std::string& field);
/// RESOURCE_EXHAUSTED `LIMIT` for `bytes` that a quota, all of it or an identity's, never has; told as
/// `value`.
Status CheckQuotas(const StoreWords& words, uint64_t bytes, int64_t most, const OwnMost& own,
                   const std::string& field, uint64_t value);
/// BUSY: `held` bytes of all leave no room for `bytes` more.
Status QuotaFull(const StoreWords& words, int64_t held, int64_t bytes, int64_t most);
/// The same of the identity's own.
Status OwnQuotaFull(const StoreWords& words, int64_t held, int64_t bytes, const OwnMost& own);
/// What a rule says, or else that.
inline OwnMost RuleOr(int64_t rule, int64_t otherwise) {
  return {rule > 0 ? rule : otherwise, rule > 0};
}
/// How many of `most` one identity may have where the operator does not say: half, so that it keeps nobody
/// out. Anonymous callers, who are one identity here, may have all.
int64_t MostOfOne(const std::string& identity, int64_t most);
/// BUSY: there are as many as may be.
Status TooMany(const StoreWords& words, size_t there, int64_t most);
/// The same of the identity's own.
Status TooManyOwn(const StoreWords& words, size_t there, const OwnMost& own);

}  // namespace tilewire::engine
