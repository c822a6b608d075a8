// The program run as users run it: a child process beside a server that misbehaves on demand.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/client_fake_server.h"
#include "tests/unit/client_testing.h"
#include "tests/unit/waiting.h"

namespace tilewire::client::testing {

struct Ran {
  int exit_code = -1;
  std::string out, err;
};

/// A run of a program, output going to files.
class Program {
 public:
  Program(const std::string& binary, const std::vector<std::string>& arguments,
          const std::optional<std::string>& server = std::nullopt, const std::string& stdout_path = "")
      : out_(stdout_path.empty() ? dir_.File("out") : stdout_path) {
    std::vector<char*> argv{const_cast<char*>(binary.c_str())}, environment;
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    std::string variable = "TILEWIRE_SERVER=" + server.value_or("");
    for (char** entry = environ; *entry != nullptr; ++entry)
      if (!server || !std::string_view(*entry).starts_with("TILEWIRE_SERVER=")) environment.push_back(*entry);
    if (server) environment.push_back(variable.data());
    environment.push_back(nullptr);
    // Not fork: what a child of this many-threaded process allocates before exec can wait for ever for a lock
    // of the sanitizer's allocator that another thread held.
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out_.c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, dir_.File("err").c_str(), O_WRONLY | O_CREAT,
                                     0600);
    EXPECT_EQ(posix_spawn(&pid_, binary.c_str(), &files, nullptr, argv.data(), environment.data()), 0);
    posix_spawn_file_actions_destroy(&files);
  }
  void Kill(int signal) const { ::kill(pid_, signal); }
  Ran Wait() {
    int status = 0;
    const auto ended = [&] { return ::waitpid(pid_, &status, WNOHANG) != 0; };
    if (!tilewire::testing::Eventually(ended, std::chrono::seconds(120))) {
      ADD_FAILURE() << "the program does not end; its threads:" << Threads();
      Kill(SIGKILL);
      ::waitpid(pid_, &status, 0);
    }
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
            out_ == "/dev/full" ? "" : ReadFile(out_), ReadFile(dir_.File("err"))};
  }

 private:
  /// Name of every thread of the program, and the system call that it waits in.
  std::string Threads() const {
    std::string all;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task"))
      all += "\n" + ReadFile(thread.path() / "comm") + ReadFile(thread.path() / "syscall");
    return all + ReadFile(dir_.File("err"));
  }

  TempDir dir_;
  std::string out_;
  pid_t pid_ = 0;
};

/// Arrays of 3 × 4 in files, a server, and the program.
class Cli : public ::testing::Test {
 protected:
  Cli() {
    WriteNpy(A(), pair_.spec, pair_.a.data());
    WriteNpy(B(), pair_.spec, pair_.b.data());
  }
  std::string A() const { return dir_.File("a.npy"); }
  std::string B() const { return dir_.File("b.npy"); }
  Ran Run(const std::vector<std::string>& arguments) {
    return Program(TILEWIRE_CLI, arguments, server_.address()).Wait();
  }

  TempDir dir_;
  Pair pair_{{3, 4}};
  FakeServer server_;
};

}  // namespace tilewire::client::testing
