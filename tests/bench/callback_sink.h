// The fastest sink of gRPC 1.51 that is known here: callbacks on both sides, windows as gRPC's probe makes
// them. What the server's own way of receiving is measured by.
#pragma once

#include <memory>

#include "tests/bench/pool.h"

namespace tilewire::bench {

/// What clients connect to where gRPC listens at "unix:PATH", or on that port of loopback.
std::string ListensAt(const std::string& listen, int port);

/// Serves /raw/sink as long as it lives: copies every byte once into the pool, and answers one message at
/// half-close.
class CallbackSink {
 public:
  /// At `listen`: "unix:PATH", or "localhost:0" for a free port of loopback.
  CallbackSink(Pool* pool, const std::string& listen);
  ~CallbackSink();
  /// What clients connect to.
  std::string address() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tilewire::bench
