// The files of --trace and --timeline.
#pragma once

#include <optional>
#include <string>

#include "client/cli/commands.h"
#include "client/cpp/file.h"

namespace tilewire::cli {

/// Both files appear whole or not at all, once the call has succeeded. Not thread-safe.
class TraceFiles {
 public:
  /// Opens places for the files that `globals` names, before the call is made, so that a path that cannot be
  /// written is found first: as OutputFile::Create, or INVALID_ARGUMENT when two of them and `out` are the
  /// same.
  static Result<TraceFiles> Open(const Globals& globals, const std::string& out = "");

  /// Writes what was asked for: nothing without --trace and --timeline. `title` says what the call was.
  Status Write(const std::string& title, const client::Reply& reply);

 private:
  std::optional<client::OutputFile> trace_, timeline_;
};

}  // namespace tilewire::cli
