// Ctrl-C during a call.
#pragma once

#include <csignal>
#include <stop_token>

namespace tilewire::python {

/// While it lives, SIGINT also requests a stop of `stop`, after what Python does with it. On the main thread
/// only, where Python listens; elsewhere, and where SIGINT is ignored or ends the process, it does nothing.
/// One at a time.
class InterruptScope {
 public:
  explicit InterruptScope(std::stop_source stop);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  /// Whether SIGINT came.
  bool interrupted() const;

 private:
  bool installed_ = false;
};

}  // namespace tilewire::python
