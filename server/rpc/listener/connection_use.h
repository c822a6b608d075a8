// What the calls of one connection may take of what all share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernels/array/status.h"
#include "server/base/time_source.h"

namespace tilewire::rpc {

/// Each of one connection; 0: no bound.
struct UseLimits {
  int calls = 0, streams = 0;  ///< at once; streams are calls, too
  double calls_per_second = 0, bytes_per_second = 0;

  bool any() const { return calls > 0 || streams > 0 || calls_per_second > 0 || bytes_per_second > 0; }
};

/// Calls that there are now, and token buckets of calls and bytes: each holds what a second brings, and at
/// least one call. Bytes are known once they have come and gone (those of a small unary message when the call
/// ends), so they leave a debt, and while there is one no call begins. Thread-safe, without locks.
class ConnectionUse {
 public:
  /// A call begins: RESOURCE_EXHAUSTED `BUSY` where one of `limits` is in its way, and then nothing is taken.
  /// Field, value and allowed say which (the first of streams, calls, bytes a second and calls a second), and
  /// the retry pushback when that will do: of calls a second in turn with others (PlacesInTurn).
  Status Enter(const UseLimits& limits, bool stream, TimePoint now);
  /// One that Enter() let in is over.
  void Leave(bool stream);
  /// Bytes of a call's messages, either way.
  void Moved(const UseLimits& limits, size_t bytes, TimePoint now);

 private:
  /// When it will be full again, were nothing else taken, is all that there is to know of it (the generic
  /// cell rate algorithm of ITU-T I.371). Less than a nanosecond's worth counts as nothing.
  class Bucket {
   public:
    /// Takes that much, whatever there is.
    void Take(double count, double per_second, TimePoint now);
    /// Takes that much if it is there; else returns how long until it will be.
    /// `told`: how many were told that, and have not come yet, as far as can be told.
    Clock::duration TakeOrWait(double count, double per_second, TimePoint now, std::atomic<uint32_t>* told);
    /// How long until no more is taken than it holds.
    Clock::duration Debt(TimePoint now) const;

   private:
    std::atomic<int64_t> full_at_{0};  ///< nanoseconds
  };

  std::atomic<int> calls_{0}, streams_{0};
  Bucket call_rate_, byte_rate_;
  std::atomic<uint32_t> told_{0};  ///< of call_rate_
};

}  // namespace tilewire::rpc
