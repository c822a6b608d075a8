// What follows a call: the file or the id of its result, timing, traces.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "client/cli/commands.h"
#include "client/cli/report.h"
#include "client/cli/trace_files.h"
#include "client/cpp/file.h"

namespace tilewire::cli {

/// A .npy file that is being written: header, then array bytes as they come. Appears whole or not at all.
class NpyOutput {
 public:
  /// Errors: as OutputFile::Create.
  static Result<NpyOutput> Create(const std::string& path, const ArraySpec& spec);
  /// Thread-safe for different bytes.
  Status Write(uint64_t offset, std::span<const uint8_t> bytes) {
    return file_.Write(data_offset_ + offset, bytes);
  }
  Status Commit() { return file_.Commit(); }

 private:
  NpyOutput(client::OutputFile file, uint64_t data_offset)
      : file_(std::move(file)), data_offset_(data_offset) {}
  client::OutputFile file_;
  uint64_t data_offset_;
};

/// The timing table where it is wanted.
void MaybePrintTiming(const Globals& globals, const client::Reply& reply);

/// What all commands put into --json beside the answer itself.
void AddReply(const client::Reply& reply, nlohmann::ordered_json* json);

/// Prints that the result is in the file `path`: nothing without --json. The exit code.
int PrintFile(const Globals& globals, const std::string& path, const client::Reply& reply);

/// Prints the id of an array and lets it stay. Where it cannot be printed it is deleted: nobody would know of
/// it. The exit code.
int PrintStored(const Globals& globals, client::StoredReply* stored);

/// Writes the files of --trace and --timeline. `exit_code` is what printing the answer gave.
int WriteTrace(TraceFiles* files, const std::string& title, const client::Reply& reply, int exit_code);

}  // namespace tilewire::cli
