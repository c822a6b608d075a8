// The fastest sink of gRPC 1.51 that is known here: callbacks on both sides, windows as gRPC's probe makes
// them. What the server's own way of receiving is measured by.
#pragma once

#include <memory>

#include "tests/bench/pool.h"

namespace tilewire::bench {

/// Serves /raw/sink on a free port of loopback as long as it lives: copies every byte once into the pool, and
/// answers one message at half-close.
class CallbackSink {
 public:
  explicit CallbackSink(Pool* pool);
  ~CallbackSink();
  int port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tilewire::bench
