// Writing to sockets that nobody reads any more.
#include "client/cpp/no_broken_pipes.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include <gtest/gtest.h>

namespace tilewire::client {
namespace {

/// Of a write to a socket whose other end is closed; 0 where it went through.
int ErrorOfWriting() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return -1;
  close(ends[1]);
  const int error = write(ends[0], "x", 1) == 1 ? 0 : errno;
  close(ends[0]);
  return error;
}

/// Exit code: 0 all is as it should be.
int Write() {
  signal(SIGPIPE, SIG_DFL);  // as in any program that does not say otherwise
  {
    const NoBrokenPipes no_broken_pipes;
    if (ErrorOfWriting() != EPIPE || ErrorOfWriting() != EPIPE) return 1;
  }
  sigset_t pending, blocked;
  sigpending(&pending);
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&pending, SIGPIPE) == 1 || sigismember(&blocked, SIGPIPE) == 1 ? 2 : 0;
}

/// One that was pending before stays so.
int WriteAfterAnother() {
  signal(SIGPIPE, SIG_DFL);
  sigset_t broken, pending;
  sigemptyset(&broken);
  sigaddset(&broken, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken, nullptr);
  pthread_kill(pthread_self(), SIGPIPE);
  {
    const NoBrokenPipes no_broken_pipes;
    if (ErrorOfWriting() != EPIPE) return 1;
  }
  sigpending(&pending);
  return sigismember(&pending, SIGPIPE) == 1 ? 0 : 2;
}

TEST(NoBrokenPipes, AWriteFailsAndTheProcessLives) {
  EXPECT_EXIT(_exit(Write()), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(_exit(WriteAfterAnother()), ::testing::ExitedWithCode(0), "");
}

TEST(NoBrokenPipes, WithoutThemTheProcessEnds) {
  EXPECT_EXIT((signal(SIGPIPE, SIG_DFL), _exit(ErrorOfWriting())), ::testing::KilledBySignal(SIGPIPE), "");
}

}  // namespace
}  // namespace tilewire::client
