#include "server/ops/confinement.h"

#include <cap-ng.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "server/ops/landlock.h"

namespace tilewire::ops {
namespace {

Status Refused(const std::string& what) {
  return Status(Code::kFailedPrecondition, "LIMIT", what + ": " + std::strerror(errno));
}

// --- core dumps ----------------------------------------------------------------------------------

/// Neither a file nor, where dumps go to a program, anything of memory in what that gets.
Status EndCoreDumps() {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return Refused("switching core dumps off");
  const int filter = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);
  if (filter < 0) return Status();  // a kernel that writes none
  (void)!write(filter, "0", 1);
  close(filter);
  return Status();
}

// --- users and capabilities ----------------------------------------------------------------------

std::optional<unsigned> Number(const std::string& text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

struct UserAndGroup {
  uid_t user = 0;
  gid_t group = 0;
};

Result<UserAndGroup> FindUser(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  UserAndGroup found;
  // Not thread-safe, and there are no threads yet.
  const passwd* const entry = getpwnam(name.c_str());
  if (entry != nullptr) {
    found = {entry->pw_uid, entry->pw_gid};
  } else if (const auto number = Number(name)) {
    found = {*number, *number};
  } else {
    return BadValue("--user", text, "a user of this system, or a number");
  }
  if (colon == std::string::npos) return found;
  const std::string group_name = text.substr(colon + 1);
  if (const group* const in = getgrnam(group_name.c_str())) {
    found.group = in->gr_gid;
  } else if (const auto number = Number(group_name)) {
    found.group = *number;
  } else {
    return BadValue("--user", text, "a group of this system, or a number, after the colon");
  }
  return found;
}

Status DropPrivileges(const Confinement& what) {
  std::optional<UserAndGroup> to;
  if (!what.user.empty()) {
    TILEWIRE_ASSIGN_OR_RETURN(to, FindUser(what.user));
    if (geteuid() != 0)
      return Status(Code::kFailedPrecondition, "LIMIT",
                    "--user " + what.user + ": only root can become another user");
  }
  capng_get_caps_process();
  const bool may_bound = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP) == 1;
  const bool may_bind = capng_have_capability(CAPNG_PERMITTED, CAP_NET_BIND_SERVICE) == 1;
  capng_clear(CAPNG_SELECT_BOTH);
  if (what.low_port && may_bind)
    capng_update(CAPNG_ADD, static_cast<capng_type_t>(CAPNG_EFFECTIVE | CAPNG_PERMITTED),
                 CAP_NET_BIND_SERVICE);
  if (to) {
    const int flags = CAPNG_DROP_SUPP_GRP | (may_bound ? CAPNG_CLEAR_BOUNDING : CAPNG_NO_FLAG);
    if (capng_change_id(static_cast<int>(to->user), static_cast<int>(to->group),
                        static_cast<capng_flags_t>(flags)) != 0)
      return Refused("--user " + what.user);
    return Status();
  }
  if (capng_apply(may_bound ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS) != 0)
    return Refused("dropping capabilities");
  return Status();
}

// --- files ---------------------------------------------------------------------------------------

/// Where programs, libraries, certificates, the kernel's facts and devices' drivers lie.
constexpr std::array kSystemFolders{"/usr", "/lib",  "/lib64", "/bin", "/etc",
                                    "/opt", "/proc", "/sys",   "/run", "/nix"};

std::vector<std::string> ReadableFolders(const Confinement& what) {
  std::vector<std::string> folders(kSystemFolders.begin(), kSystemFolders.end());
  std::error_code error;
  // Of a bundle: bin/ and lib/.
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(program.parent_path().parent_path());
  folders.insert(folders.end(), what.read.begin(), what.read.end());
  return folders;
}

/// Devices and shared memory; names of threads, which CUDA sets; its daemon's pipes.
std::vector<std::string> WritableFolders(const Confinement& what) {
  std::vector<std::string> folders{"/dev", "/proc/self/task", "/tmp/nvidia-mps"};
  folders.insert(folders.end(), what.write.begin(), what.write.end());
  return folders;
}

// --- system calls --------------------------------------------------------------------------------

constexpr std::array kNeverCalled{SCMP_SYS(process_vm_readv),
                                  SCMP_SYS(process_vm_writev),
                                  SCMP_SYS(mount),
                                  SCMP_SYS(umount2),
                                  SCMP_SYS(move_mount),
                                  SCMP_SYS(open_tree),
                                  SCMP_SYS(fsopen),
                                  SCMP_SYS(fsmount),
                                  SCMP_SYS(fspick),
                                  SCMP_SYS(mount_setattr),
                                  SCMP_SYS(pivot_root),
                                  SCMP_SYS(chroot),
                                  SCMP_SYS(setns),
                                  SCMP_SYS(unshare),
                                  SCMP_SYS(bpf),
                                  SCMP_SYS(perf_event_open),
                                  SCMP_SYS(userfaultfd),
                                  SCMP_SYS(io_uring_setup),
                                  SCMP_SYS(kexec_load),
                                  SCMP_SYS(kexec_file_load),
                                  SCMP_SYS(init_module),
                                  SCMP_SYS(finit_module),
                                  SCMP_SYS(delete_module),
                                  SCMP_SYS(reboot),
                                  SCMP_SYS(swapon),
                                  SCMP_SYS(swapoff),
                                  SCMP_SYS(acct),
                                  SCMP_SYS(add_key),
                                  SCMP_SYS(request_key),
                                  SCMP_SYS(keyctl),
                                  SCMP_SYS(open_by_handle_at),
                                  SCMP_SYS(settimeofday),
                                  SCMP_SYS(clock_settime),
                                  SCMP_SYS(clock_adjtime),
                                  SCMP_SYS(adjtimex),
                                  SCMP_SYS(sethostname),
                                  SCMP_SYS(setdomainname),
                                  SCMP_SYS(iopl),
                                  SCMP_SYS(ioperm),
                                  SCMP_SYS(syslog),
                                  SCMP_SYS(quotactl),
                                  SCMP_SYS(vhangup),
                                  SCMP_SYS(personality)};

// LeakSanitizer looks at its own threads by ptrace, and reports are made readable by a program.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif
constexpr std::array kOtherPrograms{SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(ptrace)};

}  // namespace

Status Confine(const Confinement& what, std::vector<std::string>* notes) {
  if (!what.core_dumps) TILEWIRE_RETURN_IF_ERROR(EndCoreDumps());
  if (what.privileges || !what.user.empty()) TILEWIRE_RETURN_IF_ERROR(DropPrivileges(what));
  if (!what.privileges) return Status();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Refused("giving up new privileges");
  if (!what.files) return Status();
  TILEWIRE_ASSIGN_OR_RETURN(const bool confined, AllowFiles(ReadableFolders(what), WritableFolders(what)));
  if (!confined) notes->push_back("this kernel has no Landlock: the server may open whatever its user may");
  return Status();
}

Status ConfineSystemCalls(std::vector<std::string>* notes) {
  const std::unique_ptr<void, void (*)(scmp_filter_ctx)> filter(seccomp_init(SCMP_ACT_ALLOW),
                                                                &seccomp_release);
  if (!filter) {
    notes->push_back("no seccomp: the server may call whatever the kernel offers");
    return Status();
  }
  // Some are unknown to this machine or to the library, and so cannot be called either.
  for (const int call : kNeverCalled) (void)seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), call, 0);
  if (!kSanitized)
    for (const int call : kOtherPrograms)
      (void)seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), call, 0);
  (void)seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1);
  if (const int error = seccomp_load(filter.get()); error != 0)
    notes->push_back(std::string("no seccomp: ") + std::strerror(-error));
  return Status();
}

}  // namespace tilewire::ops
