// Settings of glibc's malloc for programs that move bulk data. For main() of a program, never inside a
// library.
#pragma once

#include <climits>  // before the test: it is what defines __GLIBC__

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tilewire {

/// Keeps freed message buffers in the process: by default glibc gives them back to the kernel after each
/// large message, and the page faults of getting them again cost more than the receiving. Call once, before
/// threads start.
inline void TuneMalloc() {
#ifdef __GLIBC__
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_ARENA_MAX, 2);  // what one thread frees, another takes while it is in caches
#endif
}

}  // namespace tilewire
