// The parts of the module.
#pragma once

#include <nanobind/nanobind.h>

namespace tilewire::python {

void BindArrays(
    nanobind::module_& module);  ///< dtypes, sources, operations, what stays at the server, regions
void BindReply(nanobind::module_& module);   ///< replies, timing, pictures
void BindCall(nanobind::module_& module);    ///< options, calls, pools
void BindClient(nanobind::module_& module);  ///< the client

}  // namespace tilewire::python
