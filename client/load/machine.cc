#include "client/load/machine.h"

#include <sched.h>
#include <sys/utsname.h>

#include <charconv>
#include <fstream>

namespace tilewire::load {
namespace {

/// The text after "key: " of the first such line.
std::string LineOf(const char* file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

/// A line of /proc/meminfo in bytes; 0 where there is none.
uint64_t MemoryLine(const std::string& key) {
  const std::string text = LineOf("/proc/meminfo", key);
  uint64_t kib = 0;
  std::from_chars(text.data(), text.data() + text.size(), kib);
  return kib * 1024;
}

}  // namespace

Machine ThisMachine() {
  Machine machine;
  machine.processor = LineOf("/proc/cpuinfo", "model name");
  if (machine.processor.empty()) machine.processor = "CPU";
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) machine.cores = static_cast<uint32_t>(CPU_COUNT(&set));
  machine.memory_bytes = MemoryLine("MemTotal");
  utsname name{};
  ::uname(&name);
  machine.os = std::string(name.sysname) + " " + name.release;
  return machine;
}

uint64_t AvailableMemoryBytes() {
  const uint64_t bytes = MemoryLine("MemAvailable");
  return bytes > 0 ? bytes : uint64_t{1} << 30;
}

}  // namespace tilewire::load
