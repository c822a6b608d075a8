#include "server/engine/device/cpu/guarded_copy.h"

#include <csetjmp>
#include <csignal>
#include <cstdint>

#include <atomic>
#include <cstring>

namespace tilewire::engine {
namespace {

/// A copy that runs, and where to go when it cannot.
struct Guard {
  sigjmp_buf back;
  uintptr_t to, from;
  size_t bytes;

  bool Covers(uintptr_t address) const { return In(address, to) || In(address, from); }

 private:
  bool In(uintptr_t address, uintptr_t begin) const { return address >= begin && address - begin < bytes; }
};

// Plain and constant-initialised, so that a signal handler may read it.
constinit thread_local Guard* volatile current = nullptr;
struct sigaction before;

void OnBusError(int signal, siginfo_t* info, void*) {
  Guard* const guard = current;
  const bool fault = info->si_code > 0;  // else somebody sent the signal
  if (guard && fault && guard->Covers(reinterpret_cast<uintptr_t>(info->si_addr))) {
    current = nullptr;
    siglongjmp(guard->back, 1);
  }
  // Not ours: as if this handler were not there. A fault happens again on return, and what is raised comes
  // then.
  sigaction(signal, &before, nullptr);
  if (!fault) raise(signal);
}

bool Install() {
  struct sigaction action {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  return sigaction(SIGBUS, &action, &before) == 0;
}

}  // namespace

// Not inlined: what the jump comes back to stays as small as it looks.
[[gnu::noinline]] bool GuardedCopy(std::byte* to, const std::byte* from, size_t bytes) {
  static const bool installed = Install();
  if (!installed) return false;
  Guard guard;
  guard.to = reinterpret_cast<uintptr_t>(to);
  guard.from = reinterpret_cast<uintptr_t>(from);
  guard.bytes = bytes;
  // With the mask: the signal is blocked in its handler, which is left by a jump.
  if (sigsetjmp(guard.back, 1) != 0) return false;
  current = &guard;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(to, from, bytes);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  current = nullptr;
  return true;
}

}  // namespace tilewire::engine
