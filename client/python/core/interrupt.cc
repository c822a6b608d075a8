#include "client/python/core/interrupt.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "server/base/mutex.h"

namespace tilewire::python {
namespace {

// A handler may use nothing but these: what it runs after, and where it says that it ran.
struct sigaction previous;
std::atomic<bool> came = false;
std::atomic<int> wake = -1;

void OnInterrupt(int number, siginfo_t* info, void* context) {
  const int kept = errno;
  if ((previous.sa_flags & SA_SIGINFO) != 0)
    previous.sa_sigaction(number, info, context);
  else
    previous.sa_handler(number);
  came = true;
  const uint64_t one = 1;
  const ssize_t written = write(wake, &one, sizeof(one));
  (void)written;
  errno = kept;
}

/// Requests the stop: a handler must not.
class Watcher {
 public:
  Watcher() {
    wake = eventfd(0, EFD_CLOEXEC);
    std::thread([this] { Watch(); }).detach();  // ends with the process
  }
  void Set(std::stop_source stop) {
    const MutexLock lock(mutex_);
    stop_ = std::move(stop);
  }

 private:
  void Watch() {
    uint64_t count = 0;
    while (read(wake, &count, sizeof(count)) >= 0 || errno == EINTR) {
      const MutexLock lock(mutex_);
      if (came) stop_.request_stop();
    }
  }

  Mutex mutex_;
  std::stop_source stop_ TILEWIRE_GUARDED_BY(mutex_){std::nostopstate};
};

Watcher& TheWatcher() {
  static Watcher* const watcher = new Watcher;  // outlives every thread that may look
  return *watcher;
}

}  // namespace

InterruptScope::InterruptScope(std::stop_source stop) {
  if (gettid() != getpid()) return;
  struct sigaction found;
  if (sigaction(SIGINT, nullptr, &found) != 0) return;
  if ((found.sa_flags & SA_SIGINFO) == 0 && (found.sa_handler == SIG_DFL || found.sa_handler == SIG_IGN))
    return;
  TheWatcher().Set(std::move(stop));
  came = false;
  previous = found;
  found.sa_flags |= SA_SIGINFO;
  found.sa_sigaction = OnInterrupt;
  installed_ = sigaction(SIGINT, &found, nullptr) == 0;
}

InterruptScope::~InterruptScope() {
  if (!installed_) return;
  sigaction(SIGINT, &previous, nullptr);
  TheWatcher().Set(std::stop_source(std::nostopstate));
}

bool InterruptScope::interrupted() const {
  return installed_ && came;
}

}  // namespace tilewire::python
