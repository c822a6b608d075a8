// How kernels are launched, and how a launch can be looked at without running it.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tilewire::gpu {

/// One kernel launch: what `<<<grid, block, shared>>>` says.
struct Launch {
  const void* kernel = nullptr;  ///< the host-side handle that the CUDA runtime knows it by
  dim3 grid, block;
  size_t dynamic_shared_bytes = 0;
};

/// Where launches go: into a stream, or into a list. Every launch of an operation passes through one, so that
/// introspection lists exactly the launches that a run makes. Cheap to make for one call. Thread-safe when it
/// enqueues.
class Launcher {
 public:
  /// Enqueues on `stream`. Implicit: a stream is where most launches go.
  Launcher(cudaStream_t stream)  // NOLINT(google-explicit-constructor)
      : stream_(stream) {}
  /// Appends to `list` and launches nothing: pointers among the arguments may be null or made up.
  explicit Launcher(std::vector<Launch>* list) : list_(list) {}

  /// True when launches are listed, not made: copies and other stream calls must be skipped too.
  bool lists() const { return list_ != nullptr; }
  cudaStream_t stream() const { return stream_; }

  /// Launches `kernel` with `arguments`, converted to its parameter types. Returns the launch's error.
  template <typename... Parameters, typename... Arguments>
  cudaError_t Run(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t dynamic_shared_bytes,
                  Arguments&&... arguments) const {
    const auto* handle = reinterpret_cast<const void*>(kernel);
    if (list_ != nullptr) {
      list_->push_back(
          {.kernel = handle, .grid = grid, .block = block, .dynamic_shared_bytes = dynamic_shared_bytes});
      return cudaSuccess;
    }
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = dynamic_shared_bytes;
    config.stream = stream_;
    return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::vector<Launch>* list_ = nullptr;
};

}  // namespace tilewire::gpu
