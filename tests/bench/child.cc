#include "tests/bench/child.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

extern char** environ;

namespace tilewire::bench {

Child::Child(const std::string& program, std::vector<std::string> arguments) {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / program;
  arguments.insert(arguments.begin(), path.string());
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  const int error = posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) throw std::runtime_error("cannot start " + path.string());
  char c;
  while (read(ends[0], &c, 1) == 1 && c != '\n') line_ += c;
  close(ends[0]);
  std::istringstream words(line_);
  std::string word;
  while (words >> word)
    if (word == "ready") words >> address_;
  if (address_.empty()) throw std::runtime_error(program + " did not get ready: " + line_);
}

Child::~Child() {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  int status = 0;
  waitpid(pid_, &status, 0);
}

int64_t Child::StatusBytes(const std::string& field) const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  std::string word;
  int64_t kib = 0;
  while (status >> word)
    if (word == field && status >> kib) return kib * 1024;
  return 0;
}

}  // namespace tilewire::bench
