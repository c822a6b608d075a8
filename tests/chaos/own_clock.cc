// A wall clock of a process's own, to be preloaded: CLOCK_REALTIME is moved by the nanoseconds that the file
// named by OWN_CLOCK begins with, whenever they change. What waits until an hour of that clock (futexes, as
// Abseil's and so gRPC's do, and condition variables) ends by it, as it would by the kernel's if that were
// set. Clocks that cannot be set, and waits by them, stay as they are.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int64_t kSecond = 1'000'000'000;
/// So often a wait looks whether the clock was moved.
constexpr int64_t kSlice = 20'000'000;

/// The function of that name in the libraries behind this one. Without the guard of a static variable: where
/// two threads come to one at once, the second waits by syscall(), and so would come to it again, and again.
template <typename Function>
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}
  Function* Get() {
    Function* found = found_.load();
    if (found == nullptr) found_ = found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
    return found;
  }

 private:
  const char* const name_;
  std::atomic<Function*> found_{nullptr};
};
constinit Next<long(long, ...)> next_syscall("syscall");
constinit Next<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)> next_timedwait(
    "pthread_cond_timedwait");
constinit Next<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)> next_clockwait(
    "pthread_cond_clockwait");
constinit Next<int(clockid_t, timespec*)> next_clock("clock_gettime");

/// Null: nobody moves it. The file stays mapped: a server that gives up its files keeps it.
std::atomic<const volatile int64_t*> shift{nullptr};
const volatile int64_t* MapShift() {
  const char* const path = std::getenv("OWN_CLOCK");
  const int fd = path != nullptr ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return nullptr;
  void* const mapped = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return mapped == MAP_FAILED ? nullptr : static_cast<const volatile int64_t*>(mapped);
}
int64_t ShiftNow() {
  const volatile int64_t* const now = shift.load();
  return now == nullptr ? 0 : *now;
}

int64_t Nanoseconds(const timespec& time) {
  return time.tv_sec * kSecond + time.tv_nsec;
}
timespec Time(int64_t nanoseconds) {
  return {.tv_sec = nanoseconds / kSecond, .tv_nsec = nanoseconds % kSecond};
}
// Found when this is loaded, not when it is first asked: a sanitizer's allocator asks for the time while it
// is locked, where dlsym(), which allocates, would wait for ever.
std::atomic<bool> loaded{false};
__attribute__((constructor)) void Load() {
  (void)next_syscall.Get();
  (void)next_timedwait.Get();
  (void)next_clockwait.Get();
  loaded = next_clock.Get() != nullptr;
  shift = MapShift();
}
int KernelTime(clockid_t clock, timespec* time) {
  if (loaded) return next_clock.Get()(clock, time);
  *time = {};  // who asks before that wants to know how long ago something was that never was
  return 0;
}

/// Whether a condition variable was made to wait by the monotonic clock (glibc keeps that in this bit).
bool IsMonotonic(const pthread_cond_t& condition) {
  constexpr unsigned kMonotonic = 2;
  return (condition.__data.__wrefs & kMonotonic) != 0;
}

/// Until when, by the kernel's clock, to wait before looking at our own again; and what is then left until
/// that clock's `until`.
timespec SliceOf(const timespec& until, int64_t* left) {
  timespec now{};
  KernelTime(CLOCK_REALTIME, &now);
  const int64_t all = std::max<int64_t>(Nanoseconds(until) - ShiftNow() - Nanoseconds(now), 0);
  const int64_t slice = std::min(all, kSlice);
  *left = all - slice;
  return Time(Nanoseconds(now) + slice);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = KernelTime(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    *time = Time(Nanoseconds(*time) + ShiftNow());
  return result;
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* seconds) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (seconds != nullptr) *seconds = now.tv_sec;
  return now.tv_sec;
}

long syscall(long number, ...) noexcept {
  auto* const next = next_syscall.Get();
  long a[6];
  va_list list;
  va_start(list, number);
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  if (number != SYS_futex || a[3] == 0 || (a[1] & FUTEX_CLOCK_REALTIME) == 0 || shift.load() == nullptr)
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  for (int64_t left = 0;;) {
    const timespec slice = SliceOf(*reinterpret_cast<const timespec*>(a[3]), &left);
    const long result = next(number, a[0], a[1], a[2], &slice, a[4], a[5]);
    if (result != -1 || errno != ETIMEDOUT || left == 0) return result;
  }
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  auto* const next = next_timedwait.Get();
  if (shift.load() == nullptr || IsMonotonic(*condition)) return next(condition, mutex, until);
  int64_t left = 0;
  const timespec slice = SliceOf(*until, &left);
  const int result = next(condition, mutex, &slice);
  // Whoever waits looks again, as after any wake-up without a reason: a signal may have come in between.
  return result == ETIMEDOUT && left > 0 ? 0 : result;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  auto* const next = next_clockwait.Get();
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);
  return next(condition, mutex, clock, until);
}

}  // extern "C"
