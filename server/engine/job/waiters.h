// Who waits for a job, and what is done for them once its lock is gone.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "server/engine/job/options.h"

namespace tilewire::engine {

struct BlockWaiter {
  int stream;
  int64_t index;
  std::function<void()> function;
};

struct OutputWaiter {
  int stream;
  bool take;
  OnOutput on_output;
};

/// What is decided under a job's lock and done without it.
struct Deferred {
  bool awaits_kernels = false;  ///< that were launched: the thread that noticed a copy waits for them
  std::vector<std::function<void()>> calls;
};

}  // namespace tilewire::engine
