// Less to lose: what the process gives up because serving needs none of it. Only main calls these.
#pragma once

#include <string>
#include <vector>

#include "kernels/array/status.h"

namespace tilewire::ops {

struct Confinement {
  bool privileges = true;   ///< capabilities and new privileges are given up
  bool files = true;        ///< Landlock: only the folders that a server needs; not without `privileges`
  bool core_dumps = false;  ///< arrays of callers are in them
  bool low_port = false;    ///< a port below 1024 will be bound
  std::string user;         ///< NAME or NAME:GROUP, numbers too, to become; empty: stay
  std::vector<std::string> read;   ///< files and folders besides those of every server
  std::vector<std::string> write;  ///< folders whose files may be made, written and removed
};

/// Gives up, as far as asked, for this process and all that it starts: core dumps, other users' rights
/// (`user`), capabilities (a root without them reads and writes what its files' modes allow, and nothing
/// else), new privileges by set-user-ID programs, and files outside of what a server reads (system folders,
/// its own, `read`) and writes (/dev, `write`). To be called before the first thread: Landlock binds the
/// calling thread and those that it makes. `notes` gets a sentence for each thing that this system does not
/// offer, which is no error. INVALID_ARGUMENT: no such user; FAILED_PRECONDITION: `user` without being root,
/// or the system refuses.
Status Confine(const Confinement& what, std::vector<std::string>* notes);

/// Refuses all threads, with EPERM, system calls that no server needs once it serves and that help who has
/// taken it over: other programs, other processes' memory, mounts, namespaces, kernel modules, BPF, keys,
/// clocks. To be called once devices are open: their drivers may start programs until then. As above.
Status ConfineSystemCalls(std::vector<std::string>* notes);

}  // namespace tilewire::ops
