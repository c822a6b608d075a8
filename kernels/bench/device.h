// Owning device memory, and CUDA errors as Status.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "kernels/array/status.h"

namespace tilewire::bench {

/// OK, or RESOURCE_EXHAUSTED for out of memory, else INTERNAL: "`what`: cudaErrorName: text". Clears the
/// error.
Status FromCuda(cudaError_t error, std::string_view what);

/// Device memory of the current device, aligned as cudaMalloc's. Move-only.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// RESOURCE_EXHAUSTED when there is not that much. `bytes` may be 0.
  static Result<DeviceBuffer> Allocate(int64_t bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceBuffer();

  void* data() const { return data_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace tilewire::bench
