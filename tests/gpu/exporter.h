// Another process that allocates memory of the GPU and exports it: this program once more, as one test of its
// own that only does what it is told over two pipes.
#pragma once

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace tilewire::engine::testing {

/// What the exporter is told, before `bytes` bytes to write, or to be read.
struct ExporterCommand {
  enum Kind : uint64_t { kAllocate, kWrite, kRead } kind;
  uint64_t offset, bytes;
};
/// Its ends of the pipes; and the variable that makes the test one.
inline constexpr int kExporterIn = 63, kExporterOut = 64;
inline constexpr const char* kExporterVariable = "TILEWIRE_TEST_EXPORTER";

/// Whether all bytes passed.
inline bool ReadAll(int from, void* to, size_t bytes) {
  for (auto* at = static_cast<char*>(to); bytes > 0;) {
    const ssize_t got = read(from, at, bytes);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}
inline bool WriteAll(int to, const void* from, size_t bytes) {
  for (const auto* at = static_cast<const char*>(from); bytes > 0;) {
    const ssize_t put = write(to, at, bytes);
    if (put <= 0) return false;
    at += put;
    bytes -= static_cast<size_t>(put);
  }
  return true;
}

/// The process; ends with this object.
class Exporter {
 public:
  Exporter() {
    int in[2], out[2];
    if (pipe(in) != 0 || pipe(out) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], kExporterIn);
    posix_spawn_file_actions_adddup2(&actions, out[1], kExporterOut);
    for (const int end : {in[0], in[1], out[0], out[1]}) posix_spawn_file_actions_addclose(&actions, end);
    std::string name = "tilewire_gpu_tests", filter = "--gtest_filter=CudaExporter.DISABLED_Serves",
                disabled = "--gtest_also_run_disabled_tests",
                variable = std::string(kExporterVariable) + "=1";
    char* const arguments[] = {name.data(), filter.data(), disabled.data(), nullptr};
    std::vector<char*> environment{variable.data()};
    for (char** entry = environ; *entry; ++entry)  // a shard of the tests is not a shard of the exporter
      if (!std::string_view(*entry).starts_with("GTEST_")) environment.push_back(*entry);
    environment.push_back(nullptr);
    if (posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, arguments, environment.data()) != 0)
      process_ = 0;
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
  }
  Exporter(const Exporter&) = delete;
  ~Exporter() {
    Kill();
    close(to_);
    close(from_);
  }
  /// Allocates, once: the handle, "" where the driver gives none.
  std::string Allocate(uint64_t bytes) {
    std::string handle(64, '\0');
    uint64_t exported = 0;
    const bool answered = Tell({ExporterCommand::kAllocate, 0, bytes}) &&
                          ReadAll(from_, &exported, sizeof(exported)) &&
                          ReadAll(from_, handle.data(), handle.size());
    EXPECT_TRUE(answered);
    return answered && exported != 0 ? handle : "";
  }
  void Write(uint64_t offset, const std::byte* data, size_t bytes) {
    uint64_t done = 0;
    EXPECT_TRUE(Tell({ExporterCommand::kWrite, offset, bytes}) && WriteAll(to_, data, bytes) &&
                ReadAll(from_, &done, sizeof(done)) && done != 0);
  }
  std::vector<std::byte> Read(uint64_t offset, size_t bytes) {
    std::vector<std::byte> data(bytes);
    EXPECT_TRUE(Tell({ExporterCommand::kRead, offset, bytes}) && ReadAll(from_, data.data(), bytes));
    return data;
  }
  /// Ends it as no program likes to end.
  void Kill() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  bool Tell(const ExporterCommand& command) { return WriteAll(to_, &command, sizeof(command)); }
  pid_t process_ = 0;
  int to_ = -1, from_ = -1;
};

}  // namespace tilewire::engine::testing
