#include "client/cli/signals.h"

#include <pthread.h>
#include <unistd.h>

#include <limits>
#include <string_view>

#include "client/cli/report.h"

namespace tilewire::cli {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);
/// Wakes the watching thread; ignored by default and so of no use to anybody else.
constexpr int kWake = SIGURG;
constexpr timespec kTick{0, 100'000'000};

[[noreturn]] void EndProcess(std::string_view message, int exit_code) {
  (void)!::write(STDERR_FILENO, message.data(), message.size());
  ::_exit(exit_code);
}

}  // namespace

SignalWatcher::SignalWatcher() : give_up_at_(std::numeric_limits<Clock::rep>::max()) {
  sigemptyset(&signals_);
  sigaddset(&signals_, kWake);
  for (const int signal : {SIGINT, SIGTERM}) {
    // Whoever starts a program with a signal ignored (a shell does so in the background) means it.
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&signals_, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  thread_ = std::thread([this] { Watch(); });
}

SignalWatcher::~SignalWatcher() {
  done_ = true;
  ::pthread_kill(thread_.native_handle(), kWake);
  thread_.join();
}

void SignalWatcher::GiveUpAfter(std::chrono::milliseconds timeout) {
  timeout_ms_ = timeout.count();
  give_up_at_ = (Clock::now() + timeout + kPatience).time_since_epoch().count();
}

void SignalWatcher::Watch() {
  Clock::time_point interrupted_at{};
  while (!done_) {
    int signal = ::sigtimedwait(&signals_, nullptr, &kTick);
    if (signal == kWake) signal = 0;
    const auto now = Clock::now();
    if (signal > 0 && received_ != 0) EndProcess("", 128 + signal);
    if (signal > 0) {
      received_ = signal;
      interrupted_at = now;
      stop_.request_stop();
    }
    if (done_) break;
    if (received_ != 0 && now - interrupted_at > kPatience)
      EndProcess("error: CANCELLED: interrupted; the peer does not answer\n", 128 + received_);
    if (now.time_since_epoch().count() > give_up_at_)
      EndProcess("error: DEADLINE_EXCEEDED: " + TimeoutPassed(std::chrono::milliseconds(timeout_ms_)) +
                     "; the peer takes no data\n",
                 kExitFailed);
  }
}

}  // namespace tilewire::cli
