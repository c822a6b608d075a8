// Process setup and signals, each in a child of its own: they change the whole process.
#include "server/ops/process.h"

#include <absl/synchronization/mutex.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace tilewire::ops {
namespace {

using std::chrono::milliseconds;

/// Exit code of a child that runs `body`; -N where signal N killed it.
int InChild(const std::function<int()>& body, const std::function<void(pid_t)>& meanwhile = {}) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  if (meanwhile) meanwhile(child);
  int state = 0;
  EXPECT_EQ(waitpid(child, &state, 0), child);
  return WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
}

int LimitOpenFiles(rlim_t soft, rlim_t hard) {
  const rlimit limit{.rlim_cur = soft, .rlim_max = hard};
  return setrlimit(RLIMIT_NOFILE, &limit);
}

TEST(OpenFiles, AreRaisedToTheHardLimit) {
  EXPECT_EQ(InChild([] {
              if (LimitOpenFiles(256, 4096) != 0) return 1;
              std::string warning = "open files, of an earlier call";
              if (!PrepareProcess(&warning).ok()) return 2;
              rlimit limit{};
              if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur != 4096) return 3;
              return warning.find("open files") == std::string::npos ? 0 : 4;
            }),
            0);
}

TEST(OpenFiles, FewAreWarnedOfAndTooFewAreAnError) {
  EXPECT_EQ(InChild([] {
              if (LimitOpenFiles(256, 2048) != 0) return 1;
              std::string warning;
              if (!PrepareProcess(&warning).ok()) return 2;
              return warning.find("2048") != std::string::npos ? 0 : 3;
            }),
            0);
  EXPECT_EQ(InChild([] {
              if (LimitOpenFiles(256, 1023) != 0) return 1;
              const Status status = PrepareProcess();
              return status.code() == Code::kFailedPrecondition &&
                             status.message().find("1023; allowed: 1024 or more") != std::string_view::npos
                         ? 0
                         : 2;
            }),
            0);
}

TEST(OpenFiles, Judgement) {
  std::string warning;
  EXPECT_FALSE(JudgeOpenFiles(1023, &warning).ok());
  EXPECT_TRUE(JudgeOpenFiles(1024, &warning).ok());
  EXPECT_NE(warning, "");
  warning.clear();
  EXPECT_TRUE(JudgeOpenFiles(4096, &warning).ok());
  EXPECT_EQ(warning, "");
}

TEST(Signals, StopSignalsAreWaitedForWhicheverThreadsRun) {
  for (int sent : {SIGTERM, SIGINT}) {
    int prepared[2];
    ASSERT_EQ(pipe(prepared), 0);
    const int got = InChild(
        [&] {
          signal(SIGINT, SIG_IGN);  // as a shell leaves it for background jobs
          if (!PrepareProcess().ok() || write(prepared[1], "x", 1) != 1) return 1;
          std::thread other([] {
            for (;;) pause();
          });
          other.detach();
          return WaitForSignal();
        },
        [&](pid_t child) {
          close(prepared[1]);
          char byte = 0;
          EXPECT_EQ(read(prepared[0], &byte, 1), 1);
          EXPECT_EQ(kill(child, sent), 0);
        });
    close(prepared[0]);
    EXPECT_EQ(got, sent);
  }
}

TEST(Signals, ASecondOneIsSeenDuringDrain) {
  EXPECT_EQ(InChild([] {
              if (!PrepareProcess().ok()) return 1;
              const auto begin = std::chrono::steady_clock::now();
              if (WaitForSignalFor(milliseconds(100))) return 2;
              if (std::chrono::steady_clock::now() - begin < milliseconds(100)) return 3;
              if (WaitForSignalFor(milliseconds(0)) || WaitForSignalFor(milliseconds(-5))) return 4;
              kill(getpid(), SIGINT);
              if (WaitForSignal() != SIGINT) return 5;
              std::thread late([] { kill(getpid(), SIGTERM); });
              const bool seen = WaitForSignalFor(milliseconds::max());
              late.join();
              return seen ? 0 : 6;
            }),
            0);
}

TEST(Signals, RequestStopWakesTheWaiter) {
  EXPECT_EQ(InChild([] {
              if (!PrepareProcess().ok()) return 1;
              std::thread fault(RequestStop);
              const int got = WaitForSignal();
              fault.join();
              return got;
            }),
            SIGTERM);
}

TEST(Signals, ABrokenPipeKillsNobody) {
  EXPECT_EQ(InChild([] {
              if (!PrepareProcess().ok()) return 1;
              int ends[2];
              if (pipe(ends) != 0) return 2;
              close(ends[0]);
              return write(ends[1], "x", 1) == -1 && errno == EPIPE ? 0 : 3;
            }),
            0);
}

/// Two locks in both orders, as a check of locks tells where it is on.
int TakeInBothOrders() {
  absl::Mutex a, b;
  for (int i = 0; i < 2; ++i) {
    absl::Mutex *first = i == 0 ? &a : &b, *second = i == 0 ? &b : &a;
    const absl::MutexLock outer(first);
    const absl::MutexLock inner(second);
  }
  return 0;
}

TEST(LockChecks, AreDropped) {
  EXPECT_EQ(InChild([] {
              // As Abseil without NDEBUG begins; with it this changes nothing.
              absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kAbort);
              return PrepareProcess().ok() ? TakeInBothOrders() : 1;
            }),
            0);
}

}  // namespace
}  // namespace tilewire::ops
