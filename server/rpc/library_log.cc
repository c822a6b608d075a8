#include "server/rpc/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "server/base/mutex.h"

namespace tilewire::rpc {
namespace {

// Threads of gRPC outlive every server, so what they may be calling is never freed, only emptied.
struct Target {
  Mutex mutex;
  LibraryLog log TILEWIRE_GUARDED_BY(mutex);
};

Target& TheTarget() {
  static Target* const target = new Target;
  return *target;
}

void Tell(LibrarySeverity severity, std::string_view library, std::string_view text) {
  const MutexLock lock(TheTarget().mutex);
  if (TheTarget().log) TheTarget().log(severity, library, text);
}

void FromGrpc(gpr_log_func_args* line) {
  const std::string_view text = line->message;
  const bool last = line->severity == GPR_LOG_SEVERITY_ERROR && text.starts_with("assertion failed");
  const auto severity = last                                       ? LibrarySeverity::kLast
                        : line->severity == GPR_LOG_SEVERITY_ERROR ? LibrarySeverity::kError
                        : line->severity == GPR_LOG_SEVERITY_INFO  ? LibrarySeverity::kInfo
                                                                   : LibrarySeverity::kDebug;
  Tell(severity, "grpc", text);
}

void FromProtobuf(google::protobuf::LogLevel level, const char*, int, const std::string& text) {
  const auto severity = level == google::protobuf::LOGLEVEL_INFO      ? LibrarySeverity::kInfo
                        : level == google::protobuf::LOGLEVEL_WARNING ? LibrarySeverity::kWarning
                        : level == google::protobuf::LOGLEVEL_FATAL   ? LibrarySeverity::kLast
                                                                      : LibrarySeverity::kError;
  Tell(severity, "protobuf", text);
}

google::protobuf::LogHandler* before = nullptr;

void SetTarget(LibraryLog log) {
  const MutexLock lock(TheTarget().mutex);
  TheTarget().log = std::move(log);
}

/// Before gRPC reads it.
void NotFollowed(const char* variable, const std::string& why, const LibraryLog& log) {
  if (std::getenv(variable) == nullptr) return;
  unsetenv(variable);
  log(LibrarySeverity::kWarning, "grpc", std::string(variable) + " is not followed: " + why);
}

}  // namespace

LibraryLogRoute::LibraryLogRoute(LibraryLog log) {
  // Its traces are the headers and bytes of all calls, tokens and arrays among them.
  NotFollowed("GRPC_TRACE", "traces show tokens and arrays", log);
  // With `poll` one queue alone polls a connection; those of streams sleep while there are none.
  NotFollowed("GRPC_POLL_STRATEGY", "the server would lose connections", log);
  SetTarget(std::move(log));
  gpr_set_log_function(&FromGrpc);
  before = google::protobuf::SetLogHandler(&FromProtobuf);
}

LibraryLogRoute::~LibraryLogRoute() {
  google::protobuf::SetLogHandler(before);
  gpr_set_log_function(nullptr);
  SetTarget(nullptr);
}

}  // namespace tilewire::rpc
