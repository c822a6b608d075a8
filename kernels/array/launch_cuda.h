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

/// What is asked of the runtime, or told it, once for each kernel and device: it takes as long over that as
/// over a good part of a launch. For one thread; there are few kernels that a process launches.
template <typename Value>
class OncePerKernel {
 public:
  /// `*value` as `ask(value)` set it the first time for `kernel` on the current device; the error, should one
  /// come, which is not kept.
  template <typename Ask>
  cudaError_t Get(const void* kernel, const Ask& ask, Value* value) {
    int device = 0;
    if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
    for (const Known& known : known_) {
      if (known.kernel != kernel || known.device != device) continue;
      *value = known.value;
      return cudaSuccess;
    }
    if (const cudaError_t error = ask(value); error != cudaSuccess) return error;
    known_.push_back({kernel, device, *value});
    return cudaSuccess;
  }

 private:
  struct Known {
    const void* kernel;
    int device;
    Value value;
  };
  std::vector<Known> known_;
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
    return Enqueue(kernel, grid, block, dynamic_shared_bytes, 0, std::forward<Arguments>(arguments)...);
  }

  /// As Run, for a kernel that waits (`griddepcontrol.wait`) for the launch before it in the stream before it
  /// touches what that one writes: from compute capability 9.0 on it is then set up while that one still
  /// runs.
  template <typename... Parameters, typename... Arguments>
  cudaError_t RunEarly(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t dynamic_shared_bytes,
                       Arguments&&... arguments) const {
    if (list_ != nullptr || !Waits(reinterpret_cast<const void*>(kernel)))
      return Run(kernel, grid, block, dynamic_shared_bytes, std::forward<Arguments>(arguments)...);
    return Enqueue(kernel, grid, block, dynamic_shared_bytes, 1, std::forward<Arguments>(arguments)...);
  }

 private:
  /// Whether the kernel's code, as it runs on the current device, was compiled to wait.
  static bool Waits(const void* kernel) {
    thread_local OncePerKernel<bool> known;
    bool waits = false;
    const cudaError_t error = known.Get(
        kernel,
        [kernel](bool* answer) {
          cudaFuncAttributes attributes{};
          const cudaError_t asked = cudaFuncGetAttributes(&attributes, kernel);
          *answer = attributes.binaryVersion >= 90 && attributes.ptxVersion >= 90;
          return asked;
        },
        &waits);
    return error == cudaSuccess && waits;
  }

  template <typename... Parameters, typename... Arguments>
  cudaError_t Enqueue(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t dynamic_shared_bytes,
                      unsigned attributes, Arguments&&... arguments) const {
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.attrs = &early;
    config.numAttrs = attributes;
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = dynamic_shared_bytes;
    config.stream = stream_;
    return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
  }

  cudaStream_t stream_ = nullptr;
  std::vector<Launch>* list_ = nullptr;
};

}  // namespace tilewire::gpu
