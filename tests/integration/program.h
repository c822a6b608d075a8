// Programs as operators start them: processes with their output in files.
#pragma once

#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/helpers.h"

namespace tilewire::testing {

/// A running tilewired, or another program; killed at the end of the test if it still runs.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments) : Program(TILEWIRE_TILEWIRED, std::move(arguments)) {}
  /// Where `inherited` is a file descriptor, the program finds it as number kInherited.
  Program(const std::string& path, std::vector<std::string> arguments, int inherited = -1) {
    static std::atomic<int> number{0};
    base_ = ::testing::TempDir() + "tilewired-" + std::to_string(getpid()) + "-" + std::to_string(++number);
    arguments.insert(arguments.begin(), path);
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&files, 1, (base_ + ".out").c_str(), flags, 0600);
    posix_spawn_file_actions_addopen(&files, 2, (base_ + ".err").c_str(), flags, 0600);
    if (inherited >= 0) posix_spawn_file_actions_adddup2(&files, inherited, kInherited);
    EXPECT_EQ(posix_spawn(&pid_, argv[0], &files, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&files);
  }
  ~Program() {
    if (!ended_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    unlink((base_ + ".out").c_str());
    unlink((base_ + ".err").c_str());
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  static constexpr int kInherited = 30;

  std::string out() const { return Text(".out"); }
  std::string err() const { return Text(".err"); }

  /// The addresses of the ready lines, once there are `count` of them; fewer when it ended before.
  std::vector<std::string> Ready(size_t count = 1) {
    std::vector<std::string> addresses;
    (void)Eventually([&] {
      const bool over = Poll();
      addresses.clear();
      std::istringstream lines(out());
      for (std::string line; std::getline(lines, line);)
        if (line.starts_with("tilewired ready ") && line.ends_with(" device=cpu"))
          addresses.push_back(line.substr(16, line.size() - 16 - 11));
      return addresses.size() >= count || over;
    });
    EXPECT_EQ(addresses.size(), count) << out() << err();
    addresses.resize(count);
    return addresses;
  }

  /// Where a tilewired that is ready serves its metrics, as its log says.
  std::string MetricsAddress() const { return LoggedAddress("serving metrics"); }
  /// Where it serves something else, as `what` in its log says.
  std::string LoggedAddress(const std::string& what) const {
    const std::string log = err(), key = what + " address=";
    const size_t at = log.find(key);
    EXPECT_NE(at, std::string::npos) << log;
    if (at == std::string::npos) return "";
    return log.substr(at + key.size(), log.find_first_of(" \n", at + key.size()) - at - key.size());
  }

  int pid() const { return pid_; }
  void Signal(int signal) { kill(pid_, signal); }
  bool running() { return !Poll(); }
  /// The exit code, or −signal, or −1000 when it still runs after that time.
  int Wait(int seconds) {
    (void)Eventually([this] { return Poll(); }, std::chrono::seconds(seconds));
    if (!ended_) return -1000;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }

 private:
  std::string Text(const char* end) const {
    std::ifstream file(base_ + end);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  bool Poll() {
    if (!ended_ && waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
    return ended_;
  }

  std::string base_;
  pid_t pid_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

/// GET of `path` from host:port, or another method; the whole answer.
inline std::string HttpGet(const std::string& address, const std::string& path,
                           const std::string& method = "GET") {
  const size_t colon = address.rfind(':');
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints, &found) != 0)
    return "";
  const int fd = socket(found->ai_family, SOCK_STREAM, 0);
  std::string answer;
  if (connect(fd, found->ai_addr, found->ai_addrlen) == 0) {
    const std::string request = method + " " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    char buffer[4096];
    for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) answer.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  freeaddrinfo(found);
  return answer;
}

/// The sum of the samples of a Prometheus page whose lines begin so.
inline double SumOfMetric(const std::string& address, const std::string& begin) {
  std::istringstream lines(HttpGet(address, "/metrics"));
  double sum = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(begin)) sum += std::stod(line.substr(line.rfind(' ')));
  return sum;
}

}  // namespace tilewire::testing
