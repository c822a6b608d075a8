// CUDA errors become a Status here and nowhere else. Included by the CUDA files of the engine only.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <string_view>

#include "kernels/array/status.h"
#include "server/base/mutex.h"

namespace tilewire::engine {

enum class CudaErrorClass : uint8_t {
  kOk,
  kOutOfMemory,  ///< the same may succeed later
  kCall,         ///< this call or launch was wrong or refused; the device goes on
  kFatal,        ///< the context or the device is gone for good: every later call fails too
};
CudaErrorClass Classify(cudaError_t error);

/// OK, or: BUSY (out of memory), INTERNAL `INTERNAL_ERROR` (call), INTERNAL `DEVICE_FAILED` (fatal); the
/// message says what was called, the error's name and text, and the line. Clears the calling thread's last
/// error, so that it does not show up again as that of the next launch. Thread-safe.
Status ToStatus(cudaError_t error, std::string_view what, const char* file, int line);

/// Where nothing can be reported, as in destructors: clears the calling thread's last error. Never throws.
inline void IgnoreCudaError(cudaError_t error) noexcept {
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
}

/// Whether a device still works. Once failed it stays so, with the first cause. Thread-safe.
class CudaHealth {
 public:
  Status status() const;
  /// Remembers a DEVICE_FAILED status; passes every status on.
  Status Note(Status status);

 private:
  std::atomic<bool> failed_{false};  ///< so that asking costs no lock
  mutable Mutex mutex_;
  Status cause_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire::engine

/// The Status of a CUDA runtime call.
#define TILEWIRE_CUDA_STATUS(call) ::tilewire::engine::ToStatus((call), #call, __FILE__, __LINE__)
