// The one place where an exception becomes a status.
#pragma once

#include <exception>
#include <type_traits>

#include "kernels/array/status.h"
#include "server/rpc/transport/coroutine.h"

namespace tilewire::rpc {

/// Awaits the task that `make()` gives. What it throws is INTERNAL, its text in the log only.
template <typename Make>
std::invoke_result_t<Make> Caught(Make make) {
  try {
    co_return co_await make();
  } catch (const std::exception& error) {
    co_return Status(Code::kInternal, "INTERNAL_ERROR", error.what());
  } catch (...) {
    co_return Status(Code::kInternal, "INTERNAL_ERROR", "unknown exception");
  }
}

}  // namespace tilewire::rpc
