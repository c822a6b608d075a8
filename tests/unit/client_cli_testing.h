// The program run as users run it: a child process beside a server that misbehaves on demand.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/client_fake_server.h"
#include "tests/unit/client_testing.h"

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
    pid_ = ::fork();
    if (pid_ != 0) return;
    std::vector<char*> argv{const_cast<char*>(binary.c_str())};
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    if (server) ::setenv("TILEWIRE_SERVER", server->c_str(), 1);
    ::dup2(::open(out_.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    ::dup2(::open(dir_.File("err").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    ::execv(binary.c_str(), argv.data());
    ::_exit(127);
  }
  void Kill(int signal) const { ::kill(pid_, signal); }
  Ran Wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
            out_ == "/dev/full" ? "" : ReadFile(out_), ReadFile(dir_.File("err"))};
  }

 private:
  TempDir dir_;
  std::string out_;
  pid_t pid_;
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
