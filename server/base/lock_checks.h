// What Abseil checks at every lock that gRPC takes.
#pragma once

#include <absl/synchronization/mutex.h>

namespace tilewire {

/// Makes Abseil no longer look for cycles among the locks that this process takes. Where it was built without
/// NDEBUG, as Debian's and Ubuntu's are, it does: each lock of gRPC's then visits a graph that all threads
/// share, under one spin lock. It is an eighth of a server's instructions for a small call. For the whole
/// process; call it first in main, or where a module is loaded that brings its own Abseil.
inline void DropLockChecks() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace tilewire
