#include "client/load/interrupt.h"

#include <unistd.h>

namespace tilewire::load {
namespace {

constexpr timespec kTick{0, 50'000'000};

}  // namespace

Interrupt::Interrupt() {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM}) {
    // Whoever starts a program with a signal ignored (a shell does so in the background) means it.
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&signals_, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  thread_ = std::thread([this] {
    while (!done_) {
      const int signal = ::sigtimedwait(&signals_, nullptr, &kTick);
      if (signal <= 0) continue;
      if (received_ != 0) ::_exit(128 + signal);
      received_ = signal;
      stop_.request_stop();
    }
  });
}

Interrupt::~Interrupt() {
  done_ = true;
  thread_.join();
}

}  // namespace tilewire::load
