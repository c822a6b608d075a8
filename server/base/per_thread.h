// What each thread has one of.
#pragma once

#include <memory>

namespace tilewire {

/// The calling thread's own T, made when it first asks for it. On the heap: a thread_local of many bytes is
/// taken from the stacks of all threads, those of libraries too, and the metrics server's have 100 KiB (more
/// than 16 KiB in all fail a test, tests/layout/thread_storage.py).
template <typename T>
T& PerThread() {
  thread_local const std::unique_ptr<T> its_own = std::make_unique<T>();
  return *its_own;
}

}  // namespace tilewire
