// How many streams each caller has whose rule bounds them.
#pragma once

#include <map>
#include <string>

#include "kernels/array/status.h"
#include "server/base/mutex.h"

namespace tilewire::rpc {

/// Thread-safe.
class OwnStreams {
 public:
  /// One more of the caller's: RESOURCE_EXHAUSTED `BUSY` where he has `most` already, and nothing is counted.
  Status Enter(const std::string& caller, int most);
  /// One that Enter() let in is over.
  void Leave(const std::string& caller);

 private:
  Mutex mutex_;
  std::map<std::string, int> there_ TILEWIRE_GUARDED_BY(mutex_);  ///< no zeros
};

}  // namespace tilewire::rpc
