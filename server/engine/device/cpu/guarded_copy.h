// Copying to and from memory that another process may take away: a file that is mapped here can be made
// smaller there, and then touching it raises SIGBUS, which ends a process that is not prepared for it.
#pragma once

#include <cstddef>

namespace tilewire::engine {

/// memcpy that comes back when pages of either side are gone: whether all bytes were copied; if not, what was
/// written is undefined. Each byte is read once. Only a SIGBUS of this very copy on this very thread is
/// caught; any other one does what it did before. The first call installs the handler. Thread-safe.
bool GuardedCopy(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace tilewire::engine
