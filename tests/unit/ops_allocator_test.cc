// What only a process without sanitizers can show: they bring an allocator of their own.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "server/ops/process.h"
#include "tests/unit/sanitized.h"

namespace tilewire::ops {
namespace {

TEST(Allocator, TakesTheTuning) {
  if (tilewire::testing::kSanitized) GTEST_SKIP() << "sanitizers bring their own allocator";
  const pid_t child = fork();  // a process of its own: it is changed for good
  if (child == 0) {
    const rlimit files{.rlim_cur = 4096, .rlim_max = 4096};
    if (setrlimit(RLIMIT_NOFILE, &files) != 0) _exit(1);
    std::string warning;
    _exit(PrepareProcess(&warning).ok() && warning.empty() ? 0 : 2);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state));
  EXPECT_EQ(WEXITSTATUS(state), 0);
}

}  // namespace
}  // namespace tilewire::ops
