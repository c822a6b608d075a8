// How much memory of gRPC's calls may bind together.
//
// gRPC 1.51 ends streams at random once its own quota is exhausted. So each call says beforehand what gRPC
// may have to hold for it, and is refused, clearly, where that would be too much.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "kernels/array/status.h"

namespace tilewire::rpc {

/// Bytes that calls hold of a common limit. Thread-safe.
class Allowance {
 public:
  /// `what` names the calls in messages, `share_of` the flag that has the limit.
  explicit Allowance(std::string what, std::string share_of = "--receive-quota")
      : what_(std::move(what)), share_of_(std::move(share_of)) {}
  /// Before the first call.
  void SetLimit(int64_t bytes) { limit_ = bytes; }
  int64_t held() const { return held_.load(); }

  /// BUSY, and nothing taken, where others hold too much; a call alone always passes.
  Status Take(int64_t bytes) {
    const int64_t others = held_.fetch_add(bytes);
    if (others == 0 || others + bytes <= limit_) return {};
    held_.fetch_sub(bytes);
    return Busy(what_ + " hold " + std::to_string(others) + " bytes for messages; allowed: " +
                    std::to_string(limit_) + " (a share of " + share_of_ + ")",
                kRetryAfterMs);
  }
  /// Takes bytes only while they are within the limit; whether it did.
  bool Try(int64_t bytes) {
    if (held_.fetch_add(bytes) + bytes <= limit_) return true;
    held_.fetch_sub(bytes);
    return false;
  }
  /// Takes bytes that are held already, whatever the limit.
  void Add(int64_t bytes) { held_.fetch_add(bytes); }
  void Return(int64_t bytes) { held_.fetch_sub(bytes); }

 private:
  static constexpr int64_t kRetryAfterMs = 250;
  const std::string what_, share_of_;
  int64_t limit_ = 0;
  std::atomic<int64_t> held_{0};
};

/// What one call holds of an allowance, given back with it. One thread at a time.
class Holding {
 public:
  explicit Holding(Allowance* allowance) : allowance_(allowance) {}
  ~Holding() { Release(); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

  /// Holds `bytes` in all, if not more already. As Allowance::Take.
  Status Reach(int64_t bytes) {
    if (bytes <= bytes_) return {};
    TILEWIRE_RETURN_IF_ERROR(allowance_->Take(bytes - bytes_));
    bytes_ = bytes;
    return {};
  }
  /// The same, but as Allowance::Try.
  bool TryReach(int64_t bytes) {
    if (bytes <= bytes_) return true;
    if (!allowance_->Try(bytes - bytes_)) return false;
    bytes_ = bytes;
    return true;
  }
  /// The same for memory that is bound already.
  void Admit(int64_t bytes) {
    if (bytes <= bytes_) return;
    allowance_->Add(bytes - bytes_);
    bytes_ = bytes;
  }
  void Release() {
    allowance_->Return(bytes_);
    bytes_ = 0;
  }

 private:
  Allowance* const allowance_;
  int64_t bytes_ = 0;
};

}  // namespace tilewire::rpc
