// Writing to sockets with code that does not say MSG_NOSIGNAL.
#pragma once

#include <signal.h>

#include <ctime>

namespace tilewire::client {

/// While it lives, writing to a socket or pipe whose other end is closed is EPIPE and not a SIGPIPE that ends
/// the process. For the thread that makes it, which must end it too; a library may not change what the
/// process does with signals.
class NoBrokenPipes {
 public:
  NoBrokenPipes() {
    sigemptyset(&broken_);
    sigaddset(&broken_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    others_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &broken_, &before_);
  }
  NoBrokenPipes(const NoBrokenPipes&) = delete;
  NoBrokenPipes& operator=(const NoBrokenPipes&) = delete;
  ~NoBrokenPipes() {
    const timespec at_once{};
    if (!others_) sigtimedwait(&broken_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t broken_{}, before_{};
  bool others_ = false;  ///< one was pending before: not ours to take
};

}  // namespace tilewire::client
