// tilewire._core: the C++ client for Python. The package around it makes numpy arrays, exceptions and
// documentation of it; nobody else should use it.
#include "client/python/core/bind.h"
#include "client/python/core/errors.h"
#include "server/base/lock_checks.h"

NB_MODULE(_core, module) {
  // Threads that are in a call when the interpreter ends keep what they hold, as they should.
  nanobind::set_leak_warnings(false);
  tilewire::DropLockChecks();
  tilewire::python::RegisterErrors();
  tilewire::python::BindArrays(module);
  tilewire::python::BindDevice(module);
  tilewire::python::BindReply(module);
  tilewire::python::BindCall(module);
  tilewire::python::BindClient(module);
  module.attr("version") = TILEWIRE_VERSION;
}
