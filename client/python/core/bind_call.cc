// Options, calls, pools.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>

#include "client/python/core/bind.h"
#include "client/python/core/call.h"
#include "client/python/core/errors.h"
#include "client/python/core/handles.h"
#include "client/python/core/interrupt.h"
#include "client/python/core/pool.h"
#include "client/python/core/unlocked.h"

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace)

namespace tilewire::python {
namespace {

std::optional<Stored> TakeStored(Call& call) {
  Stored stored{call.TakeStored()};
  return stored.array ? std::optional(std::move(stored)) : std::nullopt;
}

/// Joins threads that may wait for a server: without the GIL, and never in a forked child, which has none of
/// them.
struct PoolHandle {
  Owned<Pool> pool;
  void Close() {
    const Unlocked released;
    pool.reset();
  }
  ~PoolHandle() { Close(); }
};

}  // namespace

void RunHere(Call& call) {
  RequireNotForked();
  bool interrupted = false;
  {
    const Unlocked released;
    const InterruptScope scope(call.stop_source());
    call.Run();
    interrupted = scope.interrupted();
  }
  if (interrupted && PyErr_CheckSignals() != 0) throw nb::python_error();
  Check(call.status());
}

void BindCall(nb::module_& module) {
  using client::CallOptions;
  module.attr("default_attempts") = CallOptions().max_attempts;
  nb::class_<CallOptions>(module, "Options")
      .def(
          "__init__",
          [](CallOptions* options, double timeout, uint32_t connections, bool trace, std::string request_id,
             int max_attempts, uint64_t block_bytes, uint32_t lanes, bool sequential) {
            new (options) CallOptions;
            if (timeout >= 0)
              options->timeout = std::chrono::milliseconds(static_cast<int64_t>(std::ceil(timeout * 1e3)));
            options->connections = connections;
            options->trace = trace;
            options->request_id = std::move(request_id);
            options->max_attempts = max_attempts;
            options->block_bytes = block_bytes;
            options->lanes = lanes;
            options->sequential = sequential;
            options->concurrent_sink = true;
          },
          "timeout"_a, "connections"_a, "trace"_a, "request_id"_a, "max_attempts"_a, "block_bytes"_a,
          "lanes"_a, "sequential"_a);
  nb::class_<Call>(module, "Call")
      .def("run", &RunHere)
      .def("cancel", &Call::Cancel)
      .def("check", [](const Call& call) { Check(call.status()); })
      .def("take_stored", &TakeStored)
      .def_prop_ro("reply", [](const Call& call) { return call.reply(); });
  nb::class_<PoolHandle>(module, "Pool")
      .def(
          "__init__",
          [](PoolHandle* handle, size_t max_threads) {
            RequireNotForked();
            UseGrpc();
            new (handle) PoolHandle{Owned<Pool>(new Pool(max_threads))};
          },
          "max_threads"_a)
      .def_prop_ro("descriptor", [](const PoolHandle& handle) { return handle.pool->descriptor(); })
      .def(
          "submit",
          [](PoolHandle& handle, Call* call, uint64_t number) {
            RequireNotForked();
            handle.pool->Submit(call, number);
          },
          "call"_a, "number"_a)
      .def("finished", [](PoolHandle& handle) { return handle.pool->Finished(); })
      .def("close", &PoolHandle::Close);
}

}  // namespace tilewire::python
