#include "server/engine/device/cuda/error.h"

#include <string>
#include <utility>

namespace tilewire::engine {
namespace {

// Newer than the oldest CUDA toolkit that this builds with.
constexpr int kErrorContained = 226, kErrorTensorMemoryLeak = 721;
constexpr int64_t kDriverRetryMs = 100;

}  // namespace

CudaErrorClass Classify(cudaError_t error) {
  switch (static_cast<int>(error)) {
    case cudaSuccess:
      return CudaErrorClass::kOk;
    case cudaErrorMemoryAllocation:
      return CudaErrorClass::kOutOfMemory;
    // The context is corrupted: the kernel broke it.
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorPriorLaunchFailure:
    case kErrorTensorMemoryLeak:
    // The hardware failed or is lost.
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case kErrorContained:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:  // it was there when it was opened
    case cudaErrorDevicesUnavailable:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
    // The context, the driver or its daemon went away.
    case cudaErrorContextIsDestroyed:
    case cudaErrorDeviceUninitialized:
    case cudaErrorCudartUnloading:
    case cudaErrorInitializationError:
    case cudaErrorStartupFailure:
    case cudaErrorOperatingSystem:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorInsufficientDriver:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsClientTerminated:
      return CudaErrorClass::kFatal;
    default:
      return CudaErrorClass::kCall;
  }
}

Status ToStatus(cudaError_t error, std::string_view what, const char* file, int line) {
  const CudaErrorClass kind = Classify(error);
  if (kind == CudaErrorClass::kOk) return {};
  static_cast<void>(cudaGetLastError());
  std::string_view name(file);
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  std::string message(what);
  message.append(": ").append(cudaGetErrorName(error)).append(" (").append(cudaGetErrorString(error));
  message.append("), ").append(name).append(":").append(std::to_string(line));
  if (kind == CudaErrorClass::kOutOfMemory) return Busy("out of memory: " + message, kDriverRetryMs);
  return Status(Code::kInternal, kind == CudaErrorClass::kFatal ? "DEVICE_FAILED" : "INTERNAL_ERROR",
                message);
}

Status CudaHealth::status() const {
  if (!failed_.load(std::memory_order_acquire)) return {};
  MutexLock lock(mutex_);
  return cause_;
}

Status CudaHealth::Note(Status status) {
  if (status.code() == Code::kInternal && status.reason() == "DEVICE_FAILED") {
    MutexLock lock(mutex_);
    if (cause_.ok()) cause_ = status;
    failed_.store(true, std::memory_order_release);
  }
  return status;
}

}  // namespace tilewire::engine
