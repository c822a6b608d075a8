#include "kernels/bench/device.h"

#include <string>

#include "kernels/figures/text.h"

namespace tilewire::bench {

Status FromCuda(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();
  const std::string message =
      std::string(what) + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error);
  if (error == cudaErrorMemoryAllocation) return Status(Code::kResourceExhausted, "DEVICE_MEMORY", message);
  return Status(Code::kInternal, "CUDA", message);
}

Result<DeviceBuffer> DeviceBuffer::Allocate(int64_t bytes) {
  DeviceBuffer buffer;
  const cudaError_t error = cudaMalloc(&buffer.data_, static_cast<size_t>(bytes));
  TILEWIRE_RETURN_IF_ERROR(FromCuda(error, "allocating " + FormatBytes(bytes)));
  buffer.bytes_ = bytes;
  return buffer;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) cudaFree(data_);
}

}  // namespace tilewire::bench
