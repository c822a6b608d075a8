#include "client/python/core/fork.h"

#include <pthread.h>

#include <atomic>

#include "client/python/core/errors.h"

namespace tilewire::python {
namespace {
std::atomic<bool> forked = false;
}  // namespace

void UseGrpc() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forked = true; });
  (void)registered;
}

bool Forked() {
  return forked;
}

void RequireNotForked() {
  if (Forked())
    throw StatusError(Status(
        Code::kFailedPrecondition, "FORKED",
        "this process was forked from one that had called a server already, and gRPC does not survive that; "
        "start processes by spawn or forkserver, or fork before the first call"));
}

}  // namespace tilewire::python
