// The parts of the module.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewire::python {

class Call;
struct Connection;

void BindArrays(
    nanobind::module_& module);  ///< dtypes, sources, operations, what stays at the server, regions
void BindDevice(nanobind::module_& module);             ///< arrays on a CUDA device
void BindReply(nanobind::module_& module);              ///< replies, timing, pictures
void BindCall(nanobind::module_& module);               ///< options, calls, pools
void BindClient(nanobind::module_& module);             ///< the client
void BindQuick(nanobind::class_<Connection>& binding);  ///< its calls of one step

/// Runs a call on the thread that asked for it, without the GIL. Ctrl-C ends it, and its exception is
/// Python's. Throws StatusError where it failed.
void RunHere(Call& call);

}  // namespace tilewire::python
