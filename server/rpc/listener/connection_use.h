// What the calls of one connection may take of what all share.
#pragma once

#include <atomic>
#include <cstddef>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
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
/// ends), so they leave a debt, and while there is one no call begins. Thread-safe; a leaf.
class ConnectionUse {
 public:
  /// A call begins: RESOURCE_EXHAUSTED `BUSY` where one of `limits` is in its way, and then nothing is taken.
  /// Field, value and allowed say which, and the retry pushback when it will do.
  Status Enter(const UseLimits& limits, bool stream, TimePoint now);
  /// One that Enter() let in is over.
  void Leave(bool stream);
  /// Bytes of a call's messages, either way.
  void Moved(const UseLimits& limits, size_t bytes, TimePoint now);

 private:
  /// Less what was taken; what time brings comes when somebody looks.
  struct Bucket {
    double taken = 0;  ///< of what it holds
    TimePoint since;

    void Refill(double per_second, TimePoint now);
  };

  Mutex mutex_;
  std::atomic<int> calls_{0}, streams_{0};  ///< grow under the lock alone
  Bucket call_rate_ TILEWIRE_GUARDED_BY(mutex_), byte_rate_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire::rpc
