// NVTX ranges: what a profiler shows above the kernels. Nothing without CUDA.
#pragma once

#include <string>

namespace tilewire::bench {

/// A named range of the calling thread, from construction to destruction. Ranges nest.
class ScopedRange {
 public:
  explicit ScopedRange(const std::string& name);
  ~ScopedRange();
  ScopedRange(const ScopedRange&) = delete;
  ScopedRange& operator=(const ScopedRange&) = delete;
};

}  // namespace tilewire::bench
