// What the rpc layer tells about each call; server/ops turns it into metrics and access logs. No gRPC here.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/array/status.h"
#include "server/base/timing.h"
#include "server/rpc/calls/backlog.h"
#include "server/rpc/identity/credential_files.h"
#include "server/rpc/listener/observer.h"

namespace tilewire::rpc {

/// One finished call. Strings live as long as the record.
struct CallRecord {
  std::string method;     ///< "Kernels.Rmse", "Kernels.Execute"
  std::string operation;  ///< "rmse", "transpose", or empty where none was understood
  std::string request_id, traceparent, peer, identity, job;
  std::string
      caller;  ///< whose share of the server it used: the identity, or where an anonymous one came from
  bool joins = false;            ///< a further stream of a job, or an attempt at it: no call of its own
  std::optional<JobClass> shed;  ///< refused before it waited, since too many others did
  Status status;
  Timing timing;           ///< wall_us always; the rest where a job ran
  uint64_t bytes_in = 0;   ///< operand bytes received, also of failed calls
  uint64_t bytes_out = 0;  ///< result bytes sent
};

/// Thread-safe; called on rpc threads, so it must not block.
class CallObserver : public ConnectionObserver {
 public:
  virtual void OnCallStart(std::string_view method) = 0;
  virtual void OnCallEnd(const CallRecord& record) = 0;
  /// Of the files by which callers are known; at the start, and when it is another.
  virtual void OnCredentials(const CredentialState& state) { (void)state; }
};

}  // namespace tilewire::rpc
