// Who did what, and what became of it: a file of its own beside the log, for those who must answer for the
// data.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/array/status.h"
#include "server/ops/failure_fold.h"
#include "server/rpc/calls/observer.h"
#include "server/rpc/listener/file_descriptor.h"

namespace tilewire::ops {

class LogSink;

/// The file to append to; made if it is not there, readable by its user and group. FAILED_PRECONDITION naming
/// --audit-log where it cannot be. Call before the process gives up its files.
Result<rpc::FileDescriptor> OpenAuditFile(const std::string& path);

/// One JSON object a line: `ts`, `decision` (done, denied: who calls may not or is unknown, refused: nothing
/// was done, failed: something may have been), `identity`, `caller` (whose share it used), `peer`, `method`,
/// `operation`, `status`, `reason`, `calls` (of which it tells), `bytes_in`, `bytes_out`, `region_bytes_in`,
/// `region_bytes_out`, `request_id`. Nothing that a caller sent but names is in it: no values, no arrays'
/// ids, no messages.
///
/// Thread-safe. Nobody waits for the disk: what does not fit into 4 MiB is dropped, counted, and told by a
/// line. Lines wait up to 50 ms to be written together; a process that is killed loses those.
class AuditLog {
 public:
  /// Throws std::system_error where no thread can be made.
  explicit AuditLog(rpc::FileDescriptor file);
  /// Writes what is left, for a second at most.
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  /// Of a call, in a line of `now`.
  void Tell(const rpc::CallRecord& record,
            std::chrono::system_clock::time_point now = std::chrono::system_clock::now());
  /// Of `calls` failed ones that have no line of their own.
  void TellFolded(const FailureKind& kind, uint64_t calls);
  /// Waits until all that was told is written, for a second at most.
  void Flush();
  /// Lines that are not in the file.
  uint64_t dropped() const;

 private:
  const rpc::FileDescriptor file_;
  const std::unique_ptr<LogSink> sink_;
};

/// What became of a call, as the audit log calls it.
std::string_view DecisionOf(const Status& status);

}  // namespace tilewire::ops
