// What Abseil checks at every lock that gRPC takes.
#pragma once

#include <absl/synchronization/mutex.h>

namespace tilewire {

/// Makes Abseil no longer look for cycles among the locks that this process takes. Where it was built without
/// NDEBUG, as Debian's and Ubuntu's are, it does: each lock of gRPC's then visits a graph that all threads
/// share, under one spin lock. It is a seventh of the instructions of a small call. Call it first in main,
/// before any thread starts.
inline void DropLockChecks() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace tilewire
