// Where log lines go without anybody waiting for whoever reads them.
#pragma once

#include <spdlog/sinks/sink.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "server/base/mutex.h"
#include "server/base/timing.h"

namespace tilewire::ops {

/// Lines are formatted by those who log and written by one thread (`tw-log`). While a pipe is full, because
/// nobody reads it, lines are kept up to a bound; what comes beyond it is dropped and counted, and a line
/// says how many once there is room. Lines may be gathered for a moment: else each wakes the thread.
/// Thread-safe.
class LogSink final : public spdlog::sinks::sink {
 public:
  /// The line, with its end, that tells of lines dropped.
  using DroppedLine = std::function<std::string(uint64_t lines)>;

  /// Writes to `fd`, which it does not own. A line waits up to `gather` for others, unless somebody flushes,
  /// or half of `most_bytes` is used. Throws std::system_error where no thread can be made.
  LogSink(int fd, size_t most_bytes, DroppedLine dropped_line, std::chrono::milliseconds gather = {});
  /// Writes what is left, for as long as Flush.
  ~LogSink() override;

  /// Takes a line, with its end. Never throws but for lack of memory.
  void Append(std::string_view line);
  void log(const spdlog::details::log_msg& message) override;
  /// Waits until all that was logged is written, for a second at most.
  void flush() override;
  void set_pattern(const std::string&) override {}
  /// Before the first line.
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    formatter_ = std::move(formatter);
  }

  /// Lines that nobody will read.
  uint64_t dropped() const { return dropped_.load(); }

 private:
  static constexpr size_t kLineBytes = 64;  ///< of a cache

  void Run();
  /// Returns when lines are to be written, or none will come.
  void AwaitLines() TILEWIRE_REQUIRES(mutex_);
  bool AtOnce() const TILEWIRE_REQUIRES(mutex_) {
    return stop_ || flushing_ > 0 || waiting_.size() >= most_bytes_ / 2;
  }
  /// How many bytes were written until it gave up.
  size_t Write(const std::string& lines);
  bool MayWrite();

  const int fd_;
  const size_t most_at_once_, most_bytes_;
  const DroppedLine dropped_line_;
  const std::chrono::milliseconds gather_;
  std::unique_ptr<spdlog::formatter> formatter_;
  std::atomic<uint64_t> dropped_{0};
  // What each line touches is close together, as threads of all cores log.
  alignas(kLineBytes) Mutex mutex_;
  std::string waiting_ TILEWIRE_GUARDED_BY(mutex_);  ///< whole lines
  uint64_t untold_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< dropped lines of which no line tells yet
  bool writing_ TILEWIRE_GUARDED_BY(mutex_) = false;
  int flushing_ TILEWIRE_GUARDED_BY(mutex_) = 0;  ///< those who wait until all is written
  bool stop_ TILEWIRE_GUARDED_BY(mutex_) = false;
  CondVar wake_, written_;
  TimePoint give_up_ TILEWIRE_GUARDED_BY(mutex_) = TimePoint::max();
  std::thread thread_;
};

}  // namespace tilewire::ops
