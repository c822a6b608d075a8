// Work without the interpreter's lock.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace tilewire::python {

/// Lets go of the interpreter's lock while it lives. Unlike nanobind's own: when the interpreter ends
/// meanwhile, a thread that comes back is told to exit, which would unwind through destructors and end the
/// process; it then waits for the end instead.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    try {
      PyEval_RestoreThread(state_);
    } catch (abi::__forced_unwind&) {
      while (true) pause();
    }
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace tilewire::python
