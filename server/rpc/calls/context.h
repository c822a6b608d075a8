// What the calls of a server share, and how the server ends them.
#pragma once

#include <atomic>
#include <string>
#include <unordered_set>
#include <vector>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/engine/engine.h"
#include "server/rpc/calls/observer.h"
#include "server/rpc/transport/allowance.h"

namespace tilewire::rpc {

class Call;

/// What every call of a server shares. Outlives the calls.
struct CallContext {
  engine::Engine* engine = nullptr;
  CallObserver* observer = nullptr;
  std::string version;          ///< of the server, for Describe
  std::string probe_token;      ///< marks the server's own calls, which are neither logged nor counted
  std::string identity_header;  ///< lower case; empty: everybody is anonymous
  double idle_seconds = 30;
  std::vector<std::string> endpoints;
  std::atomic<bool> draining{false};
  std::atomic<bool> cutting{false};  ///< gRPC ends what is left: calls that are gone did not go by themselves
  std::atomic<TimePoint> last_arrival{TimePoint{}};
  int64_t receive_window = 0;                    ///< bytes of a stream that gRPC may hold unread
  Allowance streams{"streams"};                  ///< windows, and messages being read
  Allowance ahead{"messages read ahead"};        ///< of streams, beside the one that each reads
  Allowance unary{"waiting calls and replies"};  ///< requests until they are admitted, replies until taken

  // Calls between their start and the end of their last coroutine.
  Mutex mutex;
  CondVar ended;
  int active TILEWIRE_GUARDED_BY(mutex) = 0;
  /// Of the active ones those that can be ended from outside.
  std::unordered_set<Call*> calls TILEWIRE_GUARDED_BY(mutex);
  /// `call` may be null.
  void Begin(Call* call);
  void End(Call* call);
  /// Waits until no call is active; false when `until` came first.
  bool WaitIdle(TimePoint until);
  /// Ends calls that still run at `until` with a status, and cuts those whose clients do not take it. All
  /// that end later are gRPC's doing, because the server goes away.
  void EndCalls(TimePoint until);

 private:
  void AbortAll(bool cut);
};

/// How calls end that the server does not wait for any longer.
Status ServerGone();

}  // namespace tilewire::rpc
