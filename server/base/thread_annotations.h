// What locks guard, written so that Clang checks it (-Wthread-safety); other compilers see nothing of it. The
// check runs as tests/layout/thread_safety.py; server/THREADS.md tells which lock is which.
#pragma once

#if defined(__clang__)
#define TILEWIRE_THREAD_ANNOTATION(attribute) __attribute__((attribute))
#else
#define TILEWIRE_THREAD_ANNOTATION(attribute)
#endif

// Of types.
#define TILEWIRE_CAPABILITY(name) TILEWIRE_THREAD_ANNOTATION(capability(name))
#define TILEWIRE_SCOPED_CAPABILITY TILEWIRE_THREAD_ANNOTATION(scoped_lockable)

// Of members: who reads or writes it, or what it points to, holds the mutex.
#define TILEWIRE_GUARDED_BY(mutex) TILEWIRE_THREAD_ANNOTATION(guarded_by(mutex))
#define TILEWIRE_PT_GUARDED_BY(mutex) TILEWIRE_THREAD_ANNOTATION(pt_guarded_by(mutex))

// Of functions: the caller holds it, before and after; must not hold it; comes to hold it; holds it no more.
#define TILEWIRE_REQUIRES(...) TILEWIRE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define TILEWIRE_EXCLUDES(...) TILEWIRE_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define TILEWIRE_ACQUIRE(...) TILEWIRE_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define TILEWIRE_RELEASE(...) TILEWIRE_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define TILEWIRE_TRY_ACQUIRE(...) TILEWIRE_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))

/// The last resort, with the reason beside it.
#define TILEWIRE_NO_THREAD_SAFETY_ANALYSIS TILEWIRE_THREAD_ANNOTATION(no_thread_safety_analysis)
