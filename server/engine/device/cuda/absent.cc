// CUDA devices in a build without CUDA: none.
#include "server/engine/device/cuda/device.h"

namespace tilewire::engine {

Result<std::unique_ptr<Device>> OpenCudaDevice(int ordinal) {
  return Fail(Status(Code::kUnavailable, "NO_DEVICE",
                     "cuda:" + std::to_string(ordinal) + ": this program was built without CUDA"));
}

int CudaDeviceCount() {
  return 0;
}

}  // namespace tilewire::engine
