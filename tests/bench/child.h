// Servers under measurement: child processes that say where they listen.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tilewire::bench {

/// Starts a program that lies beside this one and waits for its line "… ready ADDR …". Ends it with SIGTERM.
class Child {
 public:
  /// Throws std::runtime_error when the program cannot start or ends before it is ready.
  Child(const std::string& program, std::vector<std::string> arguments);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  const std::string& address() const { return address_; }
  const std::string& ready_line() const { return line_; }
  /// Bytes of memory that it has in use, and the most it ever had; 0 once it is gone.
  int64_t resident_bytes() const { return StatusBytes("VmRSS:"); }
  int64_t resident_bytes_max() const { return StatusBytes("VmHWM:"); }

 private:
  int64_t StatusBytes(const std::string& field) const;

  pid_t pid_ = -1;
  std::string line_, address_;
};

}  // namespace tilewire::bench
