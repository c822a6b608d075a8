// What the process gives up, each in a child of its own: it cannot be taken back.
#include "server/ops/confinement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "server/ops/landlock.h"

namespace tilewire::ops {
namespace {

/// Exit code of a child that runs `body`; -N where signal N killed it.
int ConfinedChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int state = 0;
  EXPECT_EQ(waitpid(child, &state, 0), child);
  return WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
}

/// errno of opening, or 0.
int OpenError(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  close(fd);
  return 0;
}

/// A value of /proc/self/status.
std::string StatusLine(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key + ":")) return line.substr(line.find_first_not_of(" \t", key.size() + 1));
  return "";
}

/// Two folders with a file each, gone at the end.
struct Folders {
  Folders() {
    base = ::testing::TempDir() + "confined-" + std::to_string(getpid());
    for (const char* folder : {"/allowed", "/elsewhere", "/written"}) {
      std::filesystem::create_directories(base + folder);
      std::ofstream(base + folder + "/file") << "1";
    }
  }
  ~Folders() { std::filesystem::remove_all(base); }
  std::string base;
};

bool HasLandlock() {
  return ConfinedChild([] { return AllowFiles({"/"}, {}).value_or(false) ? 0 : 1; }) == 0;
}

TEST(Confinement, FilesElsewhereAreOutOfReach) {
  // Root may restrict itself as it is; others say first that they want no more.
  if (geteuid() != 0 || !HasLandlock()) GTEST_SKIP() << "no Landlock for this user on this kernel";
  const Folders folders;
  EXPECT_EQ(ConfinedChild([&] {
              std::vector<std::string> notes;
              const Confinement what{.read = {folders.base + "/allowed", folders.base + "/not there"},
                                     .write = {folders.base + "/written"}};
              if (!Confine(what, &notes).ok() || !notes.empty()) return 1;
              if (OpenError(folders.base + "/elsewhere/file", O_RDONLY) != EACCES) return 2;
              if (OpenError(folders.base + "/allowed/file", O_RDONLY) != 0) return 3;
              if (OpenError(folders.base + "/allowed/file", O_WRONLY) != EACCES) return 4;
              if (OpenError(folders.base + "/allowed/new", O_WRONLY | O_CREAT) != EACCES) return 5;
              if (OpenError(folders.base + "/written/new", O_WRONLY | O_CREAT) != 0) return 6;
              if (unlink((folders.base + "/written/new").c_str()) != 0) return 7;
              // Threads that are made from now on are held to it too.
              if (std::async(std::launch::async, [&] {
                    return OpenError(folders.base + "/elsewhere/file", O_RDONLY);
                  }).get() != EACCES)
                return 8;
              // What every server needs.
              if (OpenError("/dev/null", O_WRONLY) != 0 || OpenError("/etc/passwd", O_RDONLY) != 0) return 9;
              if (OpenError("/proc/self/exe", O_RDONLY) != 0) return 10;
              const std::string region = "/tilewire-confined-" + std::to_string(getpid());
              const int shared = shm_open(region.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
              if (shared < 0 || shm_unlink(region.c_str()) != 0) return 11;
              return 0;
            }),
            0);
}

TEST(Confinement, FilesMayBeLeftAsTheyAre) {
  const Folders folders;
  EXPECT_EQ(ConfinedChild([&] {
              std::vector<std::string> notes;
              if (!Confine({.files = false}, &notes).ok()) return 1;
              return OpenError(folders.base + "/elsewhere/file", O_RDONLY);
            }),
            0);
}

TEST(Confinement, NoCapabilityIsLeftAndNoneCanBeHad) {
  EXPECT_EQ(ConfinedChild([] {
              std::vector<std::string> notes;
              if (!Confine({.files = false}, &notes).ok()) return 1;
              for (const char* key : {"CapEff", "CapPrm", "CapInh"})
                if (StatusLine(key) != "0000000000000000") return 2;
              return StatusLine("NoNewPrivs") == "1" ? 0 : 3;
            }),
            0);
}

TEST(Confinement, ALowPortKeepsWhatItNeeds) {
  if (geteuid() != 0) GTEST_SKIP() << "not root";
  EXPECT_EQ(ConfinedChild([] {
              std::vector<std::string> notes;
              if (!Confine({.files = false, .low_port = true}, &notes).ok()) return 1;
              return StatusLine("CapEff") == "0000000000000400" ? 0 : 2;  // CAP_NET_BIND_SERVICE
            }),
            0);
}

TEST(Confinement, RootReadsWhatModesAllow) {
  if (geteuid() != 0) GTEST_SKIP() << "not root";
  const Folders folders;
  const std::string others = folders.base + "/elsewhere/file";
  ASSERT_EQ(chown(others.c_str(), 12345, 12345), 0);
  ASSERT_EQ(chmod(others.c_str(), 0), 0);
  EXPECT_EQ(ConfinedChild([&] {
              std::vector<std::string> notes;
              if (OpenError(others, O_RDONLY) != 0) return 1;
              if (!Confine({.files = false}, &notes).ok()) return 2;
              return OpenError(others, O_RDONLY) == EACCES ? 0 : 3;
            }),
            0);
}

TEST(Confinement, BecomesAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "not root";
  EXPECT_EQ(ConfinedChild([] {
              std::vector<std::string> notes;
              if (!Confine({.files = false, .user = "12345:54321"}, &notes).ok()) return 1;
              if (getuid() != 12345 || geteuid() != 12345 || getgid() != 54321 || getgroups(0, nullptr) != 0)
                return 2;
              return setuid(0) != 0 ? 0 : 3;
            }),
            0);
  EXPECT_EQ(ConfinedChild([] {
              std::vector<std::string> notes;
              if (!Confine({.files = false, .user = "nobody"}, &notes).ok()) return 1;
              return getuid() != 0 && getgid() != 0 ? 0 : 2;
            }),
            0);
  // Who is not root cannot.
  EXPECT_EQ(ConfinedChild([] {
              std::vector<std::string> notes;
              if (setuid(12345) != 0) return 1;
              const Status status = Confine({.files = false, .user = "0"}, &notes);
              return status.code() == Code::kFailedPrecondition ? 0 : 2;
            }),
            0);
}

TEST(Confinement, NamesUsersThatAreNotThere) {
  std::vector<std::string> notes;
  for (const char* user : {"nobody-has-this-name", "nobody:no-such-group", "-1", "nobody:"}) {
    const Status status = Confine({.files = false, .core_dumps = true, .user = user}, &notes);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << user;
    EXPECT_NE(status.message().find(user), std::string::npos) << status.message();
  }
}

TEST(Confinement, CoreDumpsHoldNoArrays) {
  EXPECT_EQ(ConfinedChild([] {
              std::vector<std::string> notes;
              if (!Confine({.files = false}, &notes).ok()) return 1;
              rlimit limit{};
              if (getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_cur != 0 || limit.rlim_max != 0) return 2;
              std::ifstream in("/proc/self/coredump_filter");
              std::string filter;
              return !(in >> filter) || filter == "00000000" ? 0 : 3;
            }),
            0);
}

TEST(Confinement, SystemCallsAreRefusedInEveryThread) {
  EXPECT_EQ(ConfinedChild([] {
              constexpr unsigned long kAsk = 0xffffffff;
              std::promise<void> confined;
              // Made before, as lanes and queues are.
              auto earlier = std::async(std::launch::async, [&] {
                confined.get_future().wait();
                return personality(kAsk) == -1 && errno == EPERM;
              });
              std::vector<std::string> notes;
              if (personality(kAsk) == -1) return 1;
              const bool prepared = Confine({.files = false}, &notes).ok() && ConfineSystemCalls(&notes).ok();
              confined.set_value();
              if (!earlier.get() || !prepared || !notes.empty()) return 2;
              if (personality(kAsk) != -1 || errno != EPERM) return 3;
              return StatusLine("Seccomp") == "2" ? 0 : 4;
            }),
            0);
}

}  // namespace
}  // namespace tilewire::ops
