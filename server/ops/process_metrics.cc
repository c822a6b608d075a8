#include "server/ops/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "server/ops/engine_metrics.h"
#include "server/ops/logging.h"

namespace tilewire::ops {
namespace {

/// Field `number` of /proc/self/stat, counted from 1 as in proc(5). The name of the program (field 2) may
/// hold spaces and parentheses, so fields are counted from the last parenthesis.
double StatField(int number) {
  std::ifstream in("/proc/self/stat");
  std::string line;
  if (!std::getline(in, line)) return -1;
  const size_t end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos) return -1;
  std::istringstream words(line.substr(end_of_name + 1));
  std::string word;
  for (int i = 3; i <= number; ++i) {
    if (!(words >> word)) return -1;
  }
  std::istringstream digits(word);
  double value = -1;
  digits >> value;
  return value;
}

/// When the machine started, seconds since 1970.
double BootTime() {
  std::ifstream in("/proc/stat");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    double value = 0;
    if (words >> name >> value && name == "btime") return value;
  }
  return -1;
}

int64_t CountOpenFiles() {
  std::error_code error;
  int64_t count = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error)) {
    ++count;
  }
  return error ? -1 : count - 1;  // less the one that lists
}

}  // namespace

ProcessStats ReadProcessStats() {
  ProcessStats stats;
  constexpr int kStartTime = 22;  // in ticks after boot
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  std::ifstream statm("/proc/self/statm");
  int64_t total_pages = 0, resident_pages = 0;
  if (statm >> total_pages >> resident_pages) stats.resident_bytes = resident_pages * sysconf(_SC_PAGESIZE);
  stats.open_files = CountOpenFiles();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) stats.max_open_files = static_cast<int64_t>(limit.rlim_cur);
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    stats.cpu_seconds = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                        static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  }
  const double boot = BootTime(), start_ticks = StatField(kStartTime);
  if (boot >= 0 && start_ticks >= 0) stats.start_time_seconds = boot + start_ticks / ticks_per_second;
  return stats;
}

std::vector<prometheus::MetricFamily> ProcessMetrics::Collect() const {
  const ProcessStats stats = ReadProcessStats();
  std::vector<prometheus::MetricFamily> families;
  auto gauge = [&](const char* name, const char* help, double value) {
    if (value >= 0) families.push_back(GaugeFamily(std::string("tilewire_process_") + name, help, value));
  };
  gauge("resident_memory_bytes", "Resident memory", static_cast<double>(stats.resident_bytes));
  gauge("open_fds", "Open file descriptors", static_cast<double>(stats.open_files));
  gauge("max_fds", "File descriptors that may be open", static_cast<double>(stats.max_open_files));
  gauge("start_time_seconds", "Start of the process, seconds since 1970-01-01 UTC", stats.start_time_seconds);
  if (stats.cpu_seconds >= 0) {
    families.push_back(CounterFamily("tilewire_process_cpu_seconds_total", "Processor time, user and system",
                                     stats.cpu_seconds));
  }
  families.push_back(CounterFamily("tilewire_log_lines_dropped_total",
                                   "Log lines dropped because nobody read stderr",
                                   static_cast<double>(DroppedLogLines())));
  if (audit_)
    families.push_back(CounterFamily("tilewire_audit_lines_dropped_total",
                                     "Lines that are not in --audit-log",
                                     static_cast<double>(audit_->dropped())));
  return families;
}

}  // namespace tilewire::ops
