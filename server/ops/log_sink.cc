#include "server/ops/log_sink.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/formatter.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace tilewire::ops {
namespace {

constexpr std::chrono::seconds kLongestFlush{1};
// Room that lines had and the next ones have again; what a storm took is given back.
constexpr size_t kKeptBytes = 256 << 10;
constexpr int kLookEveryMs = 50;  // while nobody reads: whether it is time to give up

/// A thread that no signal interrupts: those of the process are waited for elsewhere.
std::thread WithoutSignals(std::function<void()> run) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  struct Restore {
    const sigset_t* mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, mask, nullptr); }
  } restore{&before};
  return std::thread(std::move(run));
}

/// What one write takes without waiting for a reader, whom files do not have: there fewer writes are better.
size_t MostAtOnce(int fd) {
  constexpr size_t kOfFile = 64 << 10;
  struct stat facts {};
  return fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) ? kOfFile : PIPE_BUF;
}

/// Of `lines` from `at` on no more than `most`, in whole lines where they fit.
size_t Portion(const std::string& lines, size_t at, size_t most) {
  const size_t rest = lines.size() - at;
  if (rest <= most) return rest;
  const size_t end = lines.rfind('\n', at + most - 1);
  return end == lines.npos || end < at ? most : end + 1 - at;
}

}  // namespace

LogSink::LogSink(int fd, size_t most_bytes, DroppedLine dropped_line, std::chrono::milliseconds gather)
    : fd_(fd),
      most_at_once_(MostAtOnce(fd)),
      most_bytes_(most_bytes),
      dropped_line_(std::move(dropped_line)),
      gather_(gather) {
  thread_ = WithoutSignals([this] { Run(); });
}

LogSink::~LogSink() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    give_up_ = Clock::now() + kLongestFlush;
  }
  wake_.NotifyOne();
  thread_.join();
}

void LogSink::log(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  Append({line.data(), line.size()});
}

void LogSink::Append(std::string_view line) {
  const MutexLock lock(mutex_);
  if (waiting_.size() + line.size() > most_bytes_) {
    ++untold_;
    dropped_.fetch_add(1);
    return;
  }
  const bool first = waiting_.empty(), at_once = AtOnce();
  waiting_ += line;
  if (!writing_ && (first || at_once != AtOnce())) wake_.NotifyOne();
}

void LogSink::flush() {
  const TimePoint until = Clock::now() + kLongestFlush;
  const MutexLock lock(mutex_);
  ++flushing_;
  wake_.NotifyOne();
  while (writing_ || !waiting_.empty())
    if (!written_.WaitUntil(mutex_, until)) break;
  --flushing_;
}

void LogSink::AwaitLines() {
  while (!stop_ && waiting_.empty()) wake_.Wait(mutex_);
  const TimePoint until = Clock::now() + gather_;
  while (!AtOnce() && Clock::now() < until) (void)wake_.WaitUntil(mutex_, until);
}

void LogSink::Run() {
  pthread_setname_np(pthread_self(), "tw-log");
  bool torn = false;  // a part of a line was written, and its rest is lost
  std::string lines;  // in turns with waiting_
  RelockableMutexLock lock(mutex_);
  for (;;) {
    AwaitLines();
    if (waiting_.empty()) return;
    lines.clear();
    std::swap(lines, waiting_);
    const uint64_t untold = std::exchange(untold_, 0);
    writing_ = true;
    lock.Unlock();
    if (untold > 0) lines += dropped_line_(untold);
    if (torn) lines.insert(lines.begin(), '\n');
    const size_t written = Write(lines);
    const auto lost = lines.begin() + static_cast<std::ptrdiff_t>(std::max(written, size_t{torn}));
    dropped_.fetch_add(static_cast<uint64_t>(std::count(lost, lines.end(), '\n')));
    if (written > 0) torn = lines[written - 1] != '\n';
    if (lines.capacity() > kKeptBytes) lines = std::string();
    lock.Lock();
    writing_ = false;
    written_.NotifyAll();
  }
}

bool LogSink::MayWrite() {
  pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
  for (;;) {
    const int count = poll(&ready, 1, kLookEveryMs);
    if (count > 0) return true;
    const MutexLock lock(mutex_);
    if (Clock::now() >= give_up_) return false;
  }
}

size_t LogSink::Write(const std::string& lines) {
  size_t at = 0;
  while (at < lines.size()) {
    // A pipe that has room at all has it for as much as is asked for here, so this waits in poll alone.
    if (!MayWrite()) return at;
    const ssize_t count = write(fd_, lines.data() + at, Portion(lines, at, most_at_once_));
    if (count >= 0) {
      at += static_cast<size_t>(count);
    } else if (errno != EINTR && errno != EAGAIN) {
      return at;  // stderr is gone, or the disk is full: no flood, no exception
    }
  }
  return at;
}

}  // namespace tilewire::ops
