// Memory and processor limits from fake /proc and /sys trees.
#include "server/base/memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "server/base/limits.h"
#include "server/base/threads.h"

namespace tilewire {
namespace {

/// A directory with `proc` and `sys`, removed at the end.
class MemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tilewire-memory-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void HaveAvailable(int64_t bytes) {
    Write("proc/meminfo", "MemTotal:       99999999 kB\nMemFree:        1024 kB\nMemAvailable:   " +
                              std::to_string(bytes / kKiB) + " kB\n");
  }
  int64_t Usable() const { return UsableMemoryBytes(root_.string()); }
  int Threads() const { return DefaultCpuThreads(root_.string()); }

  std::filesystem::path root_;
};

TEST_F(MemoryTest, WithoutGroupsItIsWhatTheMachineHas) {
  HaveAvailable(3 * kGiB);
  EXPECT_EQ(Usable(), 3 * kGiB);
}

TEST_F(MemoryTest, OldKernelsSayOnlyWhatIsFree) {
  Write("proc/meminfo", "MemTotal: 4096 kB\nMemFree: 2048 kB\n");
  EXPECT_EQ(Usable(), 2 * kMiB);
}

TEST_F(MemoryTest, NothingReadableMeansOneGiB) {
  EXPECT_EQ(Usable(), kGiB);
  Write("proc/meminfo", "MemAvailable: lots kB\n");
  Write("proc/self/cgroup", "garbage\n0::/x\n");
  Write("sys/fs/cgroup/x/memory.max", "plenty\n");
  EXPECT_EQ(Usable(), kGiB);
}

TEST_F(MemoryTest, OwnGroupLimitsV2) {
  HaveAvailable(8 * kGiB);
  Write("proc/self/cgroup", "0::/pod/box\n");
  Write("sys/fs/cgroup/pod/box/memory.max", std::to_string(512 * kMiB) + "\n");
  EXPECT_EQ(Usable(), 512 * kMiB);
  Write("sys/fs/cgroup/pod/box/memory.max", "max\n");
  EXPECT_EQ(Usable(), 8 * kGiB);
}

TEST_F(MemoryTest, AncestorLimitsV2AndWhatTheyHoldCounts) {
  HaveAvailable(8 * kGiB);
  Write("proc/self/cgroup", "0::/pod/box\n");
  Write("sys/fs/cgroup/pod/box/memory.max", "max\n");
  Write("sys/fs/cgroup/pod/memory.max", std::to_string(kGiB) + "\n");
  Write("sys/fs/cgroup/pod/memory.current", std::to_string(700 * kMiB) + "\n");
  EXPECT_EQ(Usable(), 324 * kMiB);
  Write("sys/fs/cgroup/pod/memory.stat",
        "anon 1\nfile 9\ninactive_file " + std::to_string(400 * kMiB) + "\n");
  EXPECT_EQ(Usable(), 724 * kMiB) << "file cache that can be dropped is not used up";
}

TEST_F(MemoryTest, AFullGroupLeavesNothing) {
  HaveAvailable(8 * kGiB);
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", std::to_string(kMiB) + "\n");
  Write("sys/fs/cgroup/memory.current", std::to_string(2 * kMiB) + "\n");
  EXPECT_EQ(Usable(), 0);
  EXPECT_EQ(DefaultPinnedBytes(Usable()), 0);
}

TEST_F(MemoryTest, ContainersSeeTheirHostsPathButTheirOwnMount) {
  HaveAvailable(8 * kGiB);
  Write("proc/self/cgroup", "0::/../../elsewhere\n5:memory:/docker/0123\n");
  Write("sys/fs/cgroup/memory.max", std::to_string(256 * kMiB) + "\n");
  EXPECT_EQ(Usable(), 256 * kMiB);
}

TEST_F(MemoryTest, LimitsV1) {
  HaveAvailable(8 * kGiB);
  Write("proc/self/cgroup", "9:name=systemd:/\n4:cpuset,memory:/box\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Usable(), 8 * kGiB) << "that number means no limit";
  Write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(kGiB) + "\n");
  Write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", std::to_string(512 * kMiB) + "\n");
  Write("sys/fs/cgroup/memory/box/memory.stat", "total_inactive_file " + std::to_string(256 * kMiB) + "\n");
  EXPECT_EQ(Usable(), 768 * kMiB);
}

TEST_F(MemoryTest, LimitsV1UnderTheJoinedNameAndHybridV2) {
  HaveAvailable(8 * kGiB);
  Write("proc/self/cgroup", "4:cpuset,memory:/box\n0::/box\n");
  Write("sys/fs/cgroup/cpuset,memory/box/memory.limit_in_bytes", std::to_string(2 * kGiB) + "\n");
  EXPECT_EQ(Usable(), 2 * kGiB);
  Write("sys/fs/cgroup/unified/box/memory.max", std::to_string(kGiB) + "\n");
  EXPECT_EQ(Usable(), kGiB);
}

TEST_F(MemoryTest, PinnedIsAnEighthAtMostOneGiB) {
  EXPECT_EQ(DefaultPinnedBytes(512 * kMiB), 64 * kMiB);
  EXPECT_EQ(DefaultPinnedBytes(64 * kGiB), kGiB);
  EXPECT_EQ(DefaultPinnedBytes(-5), 0);
}

TEST_F(MemoryTest, ThreadsFollowQuotas) {
  const int all = Threads();
  ASSERT_GE(all, 1);
  Write("proc/self/cgroup", "0::/pod/box\n");
  Write("sys/fs/cgroup/pod/box/cpu.max", "max 100000\n");
  EXPECT_EQ(Threads(), all);
  Write("sys/fs/cgroup/pod/cpu.max", "50000 100000\n");
  EXPECT_EQ(Threads(), 1) << "half a processor is one thread";
  Write("sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
  EXPECT_EQ(Threads(), std::min(all, 2)) << "one and a half are two";
}

TEST_F(MemoryTest, ThreadsFollowQuotasV1) {
  const int all = Threads();
  Write("proc/self/cgroup", "3:cpu,cpuacct:/box\n");
  Write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Threads(), all);
  Write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(Threads(), 1);
}

TEST(SmallCalls, AThirdOfTheCoresTakesThemAndEachThreadHasALane) {
  for (const int few : {1, 2, 3, 4, 5, 6}) {
    EXPECT_EQ(SmallCallsAtOnce(few), 2) << few;
    EXPECT_EQ(SmallLanes(few), 2) << few;
  }
  for (const auto& [cores, threads, lanes] : {std::array{7, 3, 3}, {10, 4, 4}, {16, 6, 4}, {64, 22, 4}}) {
    EXPECT_EQ(SmallCallsAtOnce(cores), threads);
    EXPECT_EQ(SmallLanes(cores), lanes);
  }
}

TEST(MemoryOfThisMachine, IsPlausible) {
  EXPECT_GT(UsableMemoryBytes(), 0);
  EXPECT_GE(DefaultCpuThreads(), 1);
}

}  // namespace
}  // namespace tilewire
