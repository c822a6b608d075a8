#include "tests/bench/child.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

extern char** environ;

namespace tilewire::bench {
namespace {

/// The children that run.
struct Running {
  std::mutex mutex;
  std::set<Child*> children;
  bool all_ended = false;
};

Running& AllRunning() {
  static Running running;
  return running;
}

}  // namespace

Child::Child(const std::string& program, std::vector<std::string> arguments) {
  Start(program, std::move(arguments));
  std::istringstream words(line_);
  std::string word;
  while (words >> word)
    if (word == "ready") words >> address_;
  if (!address_.empty()) return;
  End();
  throw std::runtime_error(all_ended() ? "stopped" : program + " did not get ready: " + line_);
}

void Child::Start(const std::string& program, std::vector<std::string> arguments) {
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
  bool spawned = false;
  {
    const std::lock_guard lock(AllRunning().mutex);
    spawned = !AllRunning().all_ended &&
              posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), environ) == 0;
    if (spawned) AllRunning().children.insert(this);
  }
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  for (char c; spawned && read(ends[0], &c, 1) == 1 && c != '\n';) line_ += c;
  close(ends[0]);
  if (!spawned) throw std::runtime_error(all_ended() ? "stopped" : "cannot start " + path.string());
}

Child::~Child() {
  End();
}

void Child::End() {
  {
    const std::lock_guard lock(AllRunning().mutex);
    AllRunning().children.erase(this);
  }
  kill(pid_, SIGTERM);
  int status = 0;
  waitpid(pid_, &status, 0);
}

void Child::EndAll() {
  Running& running = AllRunning();
  const std::lock_guard lock(running.mutex);
  running.all_ended = true;
  for (Child* const child : running.children) {
    child->most_at_end_ = child->StatusBytes("VmHWM:");
    child->ended_ = true;
    kill(child->pid_, SIGKILL);
  }
}

bool Child::all_ended() {
  const std::lock_guard lock(AllRunning().mutex);
  return AllRunning().all_ended;
}

double Child::cpu_seconds() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string field;
  constexpr int kBefore = 11;  // fields between the name and the times in user and system mode
  for (int i = 0; i < kBefore; ++i) fields >> field;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
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
