#include "server/ops/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace tilewire::ops {
namespace {

// glibc 2.36 has no functions for these.
int CreateRuleset(const landlock_ruleset_attr* attributes, size_t size, uint32_t flags) {
  return static_cast<int>(syscall(SYS_landlock_create_ruleset, attributes, size, flags));
}

// What can be done to files beside folders.
constexpr uint64_t kReadFile = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE;
constexpr uint64_t kWriteFile = kReadFile | LANDLOCK_ACCESS_FS_WRITE_FILE;
constexpr uint64_t kRead = kReadFile | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWrite = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                            LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                            LANDLOCK_ACCESS_FS_MAKE_FIFO;
/// All of the first version, so that what is not allowed by a rule is refused.
constexpr uint64_t kHandled = kWrite | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                              LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                              LANDLOCK_ACCESS_FS_MAKE_SYM;

Status FilesErrno(const std::string& what) {
  return Status(Code::kInternal, "INTERNAL_ERROR", "Landlock: " + what + ": " + std::strerror(errno));
}

/// Closed at the end.
struct Descriptor {
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  const int fd;
};

Status Allow(int ruleset, const std::string& path, uint64_t file, uint64_t folder) {
  const Descriptor at{open(path.c_str(), O_PATH | O_CLOEXEC)};
  if (at.fd < 0) return Status();
  struct stat facts {};
  if (fstat(at.fd, &facts) != 0) return FilesErrno(path);
  const landlock_path_beneath_attr rule{.allowed_access = S_ISDIR(facts.st_mode) ? folder : file,
                                        .parent_fd = at.fd};
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    return FilesErrno(path);
  return Status();
}

}  // namespace

Result<bool> AllowFiles(const std::vector<std::string>& read, const std::vector<std::string>& write) {
  if (CreateRuleset(nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) < 1) return false;
  const landlock_ruleset_attr attributes{.handled_access_fs = kHandled};
  const Descriptor ruleset{CreateRuleset(&attributes, sizeof(attributes), 0)};
  if (ruleset.fd < 0) return Fail(FilesErrno("making a ruleset"));
  for (const std::string& path : read)
    if (Status status = Allow(ruleset.fd, path, kReadFile, kRead); !status.ok()) return Fail(status);
  for (const std::string& path : write)
    if (Status status = Allow(ruleset.fd, path, kWriteFile, kWrite); !status.ok()) return Fail(status);
  if (syscall(SYS_landlock_restrict_self, ruleset.fd, 0) != 0)
    return Fail(FilesErrno("restricting this thread"));
  return true;
}

}  // namespace tilewire::ops
