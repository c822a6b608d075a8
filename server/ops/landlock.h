// Files that this process may reach, by Linux's Landlock (5.13 and newer).
#pragma once

#include <string>
#include <vector>

#include "kernels/array/status.h"

namespace tilewire::ops {

/// From now on the calling thread, and those that it makes, open only files beneath `read` (to read, and to
/// run or load) and `write` (also to make, write and remove). What is open stays open. Paths that are not
/// there are passed over. False: this kernel has no Landlock, and nothing changed. INTERNAL: it refuses;
/// PR_SET_NO_NEW_PRIVS must be set. Source: https://docs.kernel.org/userspace-api/landlock.html.
Result<bool> AllowFiles(const std::vector<std::string>& read, const std::vector<std::string>& write);

}  // namespace tilewire::ops
