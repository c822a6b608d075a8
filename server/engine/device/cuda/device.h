// The GPU behind the device seam. No CUDA types here, so that everything above stays free of them.
#pragma once

#include <memory>

#include "server/engine/device/device.h"

namespace tilewire::engine {

/// Opens CUDA device `ordinal`. Fails (UNAVAILABLE, with the reason in words) where there is no driver, no
/// such device or it does not work; in builds without CUDA always.
Result<std::unique_ptr<Device>> OpenCudaDevice(int ordinal);

/// Number of CUDA devices that answer; 0 in builds without CUDA or without a driver.
int CudaDeviceCount();

}  // namespace tilewire::engine
