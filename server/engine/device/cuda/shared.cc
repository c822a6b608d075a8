#include "server/engine/device/cuda/shared.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <string>
#include <utility>

#include "server/engine/device/cuda/error.h"
#include "server/engine/device/device.h"

namespace tilewire::engine {
namespace {

static_assert(sizeof(cudaIpcMemHandle_t) == kExportHandleBytes);

Status Unopenable(const std::string& why) {
  return Status(Code::kFailedPrecondition, "REGION_UNPINNABLE",
                "the device cannot have this memory: " + why +
                    "; it must be of cudaMalloc, of a process on this host that runs and is not this one");
}

/// What the driver says of a handle, without its being an error of the device: classes that are fatal
/// elsewhere say here that a handle is of this process, or its exporter gone.
Status Refused(cudaError_t error, const char* what, int line) {
  Status status = ToStatus(error, what, __FILE__, line);
  if (Classify(error) == CudaErrorClass::kOutOfMemory) return status;
  if (error == cudaErrorInvalidValue || error == cudaErrorInvalidResourceHandle)
    return BadValue(
               "device_memory.handle", "64 bytes that are the handle of nothing here",
               "what cudaIpcGetMemHandle gave for memory of cudaMalloc: " + std::string(status.message()))
        .value();
  return Unopenable(std::string(status.message()));
}

/// Asked for at run time: linking the driver itself would keep the server from starting where there is none.
decltype(&cuMemGetAddressRange) AddressRange() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult answer{};
#if CUDART_VERSION >= 12050
  constexpr unsigned kVersion = 12000;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &found, kVersion, cudaEnableDefault, &answer);
#else
  const cudaError_t error =
      cudaGetDriverEntryPoint("cuMemGetAddressRange", &found, cudaEnableDefault, &answer);
#endif
  IgnoreCudaError(error);
  if (error != cudaSuccess || answer != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<decltype(&cuMemGetAddressRange)>(found);
}

/// Bytes from `data` to the end of the allocation that it lies in; 0: the driver knows none.
size_t BytesFrom(const void* data) {
  static const auto range = AddressRange();
  const auto address = reinterpret_cast<CUdeviceptr>(data);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  if (!range || range(&base, &bytes, address) != CUDA_SUCCESS) return 0;
  return address >= base && address - base < bytes ? bytes - (address - base) : 0;
}

}  // namespace

Result<Memory> OpenCudaShared(int ordinal, std::string_view handle) {
  cudaIpcMemHandle_t exported;
  if (handle.size() != sizeof(exported))
    return BadValue("device_memory.handle", std::to_string(handle.size()) + " bytes",
                    std::to_string(sizeof(exported)) + " bytes");
  std::memcpy(&exported, handle.data(), sizeof(exported));
  void* opened = nullptr;
  const cudaError_t error = cudaIpcOpenMemHandle(&opened, exported, cudaIpcMemLazyEnablePeerAccess);
  if (error != cudaSuccess) return Fail(Refused(error, "cudaIpcOpenMemHandle", __LINE__));
  auto* const data = static_cast<std::byte*>(opened);
  const size_t bytes = BytesFrom(opened);
  Memory memory(data, bytes, [ordinal](std::byte* shared, size_t) {
    IgnoreCudaError(cudaSetDevice(ordinal));
    IgnoreCudaError(cudaIpcCloseMemHandle(shared));
  });
  if (bytes == 0) return Fail(Unopenable("the driver does not tell its size"));
  return memory;
}

}  // namespace tilewire::engine
