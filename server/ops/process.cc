#include "server/ops/process.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

#include "server/base/limits.h"
#include "server/base/lock_checks.h"

namespace tilewire::ops {
namespace {

constexpr uint64_t kMinOpenFiles = 1024, kGoodOpenFiles = 4096;

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

/// False where the allocator takes no advice.
bool TuneAllocator() {
#if defined(__GLIBC__)
  // Freed receive buffers stay in the heap and are used again, instead of going back to the kernel and coming
  // in anew, zeroed and page by page.
  const bool trim = mallopt(M_TRIM_THRESHOLD, INT_MAX) == 1;
  const bool pad = mallopt(M_TOP_PAD, static_cast<int>(64 * kMiB)) == 1;
  const bool map = mallopt(M_MMAP_THRESHOLD, static_cast<int>(kGiB)) == 1;
  // Few heaps: what one thread frees another uses while it is still in caches, and not every thread keeps as
  // much as it ever held. 12% more over eight connections of a 16-core machine, 145 MiB less under stalled
  // uploads; with four, 64 callers of small calls had 5% fewer a second (tests/bench/RESULTS.md).
  const bool few = mallopt(M_ARENA_MAX, 2) == 1;
  return trim && pad && map && few;
#else
  return false;
#endif
}

Status Errno(std::string_view what) {
  return Status(Code::kInternal, "INTERNAL_ERROR", std::string(what) + ": " + std::strerror(errno));
}

/// The limit after raising it.
Result<uint64_t> RaiseOpenFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return Fail(Errno("reading the limit of open files"));
  if (limit.rlim_cur < limit.rlim_max) {
    rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;  // else what there is has to do
  }
  return static_cast<uint64_t>(limit.rlim_cur);
}

Status PrepareSignals() {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (const int signal : {SIGPIPE, SIGHUP})
    if (sigaction(signal, &ignore, nullptr) != 0) return Errno("ignoring a signal");
  const sigset_t stop = StopSignals();
  // An ignored signal would never be waited for: nohup-like parents leave SIGINT ignored.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal : {SIGTERM, SIGINT}) {
    if (sigaction(signal, &standard, nullptr) != 0) return Errno("resetting a signal");
  }
  if (errno = pthread_sigmask(SIG_BLOCK, &stop, nullptr); errno != 0) return Errno("blocking signals");
  return Status();
}

}  // namespace

Status JudgeOpenFiles(uint64_t limit, std::string* warning) {
  if (limit < kMinOpenFiles) {
    return Status(Code::kFailedPrecondition, "LIMIT",
                  "the limit of open files is " + std::to_string(limit) +
                      "; allowed: " + std::to_string(kMinOpenFiles) +
                      " or more (raise the hard limit: ulimit -n, LimitNOFILE=)");
  }
  if (limit < kGoodOpenFiles && warning != nullptr) {
    *warning = "the limit of open files is " + std::to_string(limit) + ", less than " +
               std::to_string(kGoodOpenFiles) + ": many connections will exhaust it";
  }
  return Status();
}

Status PrepareProcess(std::string* warning, bool tune_allocator) {
  if (warning != nullptr) warning->clear();
  DropLockChecks();
  if (tune_allocator && !TuneAllocator() && warning != nullptr)
    *warning = "the allocator could not be tuned: bulk receiving is slower";
  if (Status status = PrepareSignals(); !status.ok()) return status;
  auto limit = RaiseOpenFiles();
  if (!limit) return limit.error();
  return JudgeOpenFiles(*limit, warning);
}

int WaitForSignal() {
  const sigset_t stop = StopSignals();
  int signal = 0;
  while (sigwait(&stop, &signal) != 0) {
  }
  return signal;
}

bool WaitForSignalFor(std::chrono::milliseconds timeout) {
  const sigset_t stop = StopSignals();
  constexpr std::chrono::milliseconds kShortest(0), kLongest = std::chrono::hours(24 * 366);
  const auto end = std::chrono::steady_clock::now() + std::clamp(timeout, kShortest, kLongest);
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::nanoseconds>(end - std::chrono::steady_clock::now());
    const int64_t ns = std::max<int64_t>(0, left.count());
    const timespec wait{.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
                        .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
    if (sigtimedwait(&stop, nullptr, &wait) > 0) return true;
    if (errno != EINTR) return false;  // EAGAIN: time is up
  }
}

void RequestStop() {
  kill(getpid(), SIGTERM);
}

}  // namespace tilewire::ops
