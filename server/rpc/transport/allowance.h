// How much memory of gRPC's calls may bind together, and how much of it those of one caller.
//
// gRPC 1.51 ends streams at random once its own quota is exhausted. So each call says beforehand what gRPC
// may have to hold for it, and is refused, clearly, where that would be too much.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/base/thread_annotations.h"

namespace tilewire::rpc {

/// Bytes that calls hold of a common limit; no caller takes so many that others find nothing. Thread-safe.
///
/// The first quarter of the limit goes to whoever comes: small calls need nothing but an atomic. What is held
/// beyond it is counted by share (Metadata::share), and each share may have three times what is still free: a
/// dynamic threshold (A. K. Choudhury, E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet
/// switches", IEEE/ACM Transactions on Networking 6(2), 1998). So nobody is refused while a quarter is free,
/// and one caller alone leaves 3/16 of the limit. Of three quarters n callers who come together leave one
/// part in 1 + 3n; one after the other, each leaves a quarter of what he found, until those before him give
/// back.
class Allowance {
 public:
  /// What one call holds.
  struct Held {
    int64_t bytes = 0;
    int64_t counted = 0;  ///< those of them that count to its share
  };

  /// `what` names the calls in messages, `share_of` the flag that has the limit.
  explicit Allowance(std::string what, std::string share_of = "--receive-quota")
      : what_(std::move(what)), share_of_(std::move(share_of)) {}
  /// Before the first call.
  void SetLimit(int64_t bytes) {
    limit_ = bytes;
    unasked_ = bytes / 4;
  }
  int64_t held() const { return held_.load(); }
  /// How many shares have bytes that are counted.
  size_t shares() const;

  /// `bytes` more for a call of `share`. BUSY, and nothing taken, where all hold too much together or those
  /// of the share do; a call alone always passes.
  Status Take(int64_t bytes, const std::string& share, Held* held) {
    for (int64_t before = held_.load(); before + bytes <= unasked_;) {
      if (!held_.compare_exchange_weak(before, before + bytes)) continue;
      held->bytes += bytes;
      return {};
    }
    return TakeCounted(bytes, share, held);
  }
  /// Takes bytes only while they are within the limit, whoever asks; whether it did. For what calls can do
  /// without.
  bool Try(int64_t bytes, Held* held) {
    if (held_.fetch_add(bytes) + bytes > limit_) {
      held_.fetch_sub(bytes);
      return false;
    }
    held->bytes += bytes;
    return true;
  }
  /// Takes bytes that are held already, whatever the limit.
  void Add(int64_t bytes, const std::string& share, Held* held) {
    const int64_t beyond = Beyond(held_.fetch_add(bytes), bytes);
    held->bytes += bytes;
    if (beyond > 0) Count(beyond, share, held);
  }
  /// Takes all of it back. `share`: the same as before.
  void Return(const std::string& share, Held* held) {
    if (held->counted > 0) Count(-held->counted, share, held);
    held_.fetch_sub(std::exchange(held->bytes, 0));
  }

 private:
  /// How many of `bytes` are beyond the first quarter where `before` are held already.
  int64_t Beyond(int64_t before, int64_t bytes) const;
  Status TakeCounted(int64_t bytes, const std::string& share, Held* held);
  void Count(int64_t bytes, const std::string& share, Held* held);
  void CountLocked(int64_t bytes, const std::string& share, Held* held) TILEWIRE_REQUIRES(mutex_);

  const std::string what_, share_of_;
  std::atomic<int64_t> limit_{0};
  std::atomic<int64_t> unasked_{0};  ///< the first quarter
  std::atomic<int64_t> held_{0};
  mutable Mutex mutex_;
  std::unordered_map<std::string, int64_t> counted_ TILEWIRE_GUARDED_BY(mutex_);  ///< by share; none has 0
};

/// What one call holds of an allowance, given back with it. One thread at a time.
class Holding {
 public:
  /// `share`: whose call it is; outlives this, and stays as it is once bytes are held.
  Holding(Allowance* allowance, const std::string* share) : allowance_(allowance), share_(share) {}
  ~Holding() { Release(); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

  /// Holds `bytes` in all, if not more already. As Allowance::Take.
  Status Reach(int64_t bytes) {
    if (bytes <= held_.bytes) return {};
    return allowance_->Take(bytes - held_.bytes, *share_, &held_);
  }
  /// The same, but as Allowance::Try.
  bool TryReach(int64_t bytes) {
    return bytes <= held_.bytes || allowance_->Try(bytes - held_.bytes, &held_);
  }
  /// The same for memory that is bound already.
  void Admit(int64_t bytes) {
    if (bytes > held_.bytes) allowance_->Add(bytes - held_.bytes, *share_, &held_);
  }
  void Release() {
    if (held_.bytes > 0) allowance_->Return(*share_, &held_);
  }

 private:
  Allowance* const allowance_;
  const std::string* const share_;
  Allowance::Held held_;
};

}  // namespace tilewire::rpc
