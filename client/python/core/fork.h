// What a child of fork() may still do: nothing of gRPC, whose threads stayed with its parent.
#pragma once

#include <memory>

namespace tilewire::python {

/// Says that gRPC is about to be used in this process, so that its children by fork() are known as such.
/// Thread-safe.
void UseGrpc();
/// Whether this process was forked from one that had used gRPC.
bool Forked();
/// Throws StatusError, FAILED_PRECONDITION `FORKED`, where Forked().
void RequireNotForked();

/// Deletes, but not in a forked child: there it would wait for threads that are not.
struct NotInChild {
  template <typename T>
  void operator()(T* object) const {
    if (!Forked()) delete object;
  }
};
template <typename T>
using Owned = std::unique_ptr<T, NotInChild>;

}  // namespace tilewire::python
