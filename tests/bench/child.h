// Servers under measurement: child processes that say where they listen.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace tilewire::bench {

/// Starts a program that lies beside this one and waits for its line "… ready ADDR …". Ends it with SIGTERM.
/// Used by one thread, but for EndAll.
class Child {
 public:
  /// Throws std::runtime_error when the program cannot start or ends before it is ready, and after EndAll.
  Child(const std::string& program, std::vector<std::string> arguments);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  const std::string& address() const { return address_; }
  const std::string& ready_line() const { return line_; }
  /// Bytes of memory that it has in use, and the most it ever had; 0 once it is gone, but for what EndAll
  /// saw.
  int64_t resident_bytes() const { return StatusBytes("VmRSS:"); }
  int64_t resident_bytes_max() const { return ended_ ? most_at_end_.load() : StatusBytes("VmHWM:"); }
  /// Time that its threads have spent on processors.
  double cpu_seconds() const;

  /// Kills all of this process and lets no other start: calls to them fail, so whoever waits for answers goes
  /// on. Any thread.
  static void EndAll();
  /// Whether EndAll was called.
  static bool all_ended();

 private:
  /// Reads the first line that it writes, too. Throws std::runtime_error where it cannot start.
  void Start(const std::string& program, std::vector<std::string> arguments);
  void End();
  int64_t StatusBytes(const std::string& field) const;

  pid_t pid_ = -1;
  std::atomic<int64_t> most_at_end_{0};
  std::atomic<bool> ended_{false};  ///< by EndAll
  std::string line_, address_;
};

}  // namespace tilewire::bench
