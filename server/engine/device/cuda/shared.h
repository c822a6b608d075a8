// Memory of another process, by its CUDA handle.
#pragma once

#include <string_view>

#include "kernels/array/status.h"
#include "server/engine/device/memory.h"

namespace tilewire::engine {

/// Device::OpenShared of the calling thread's current device, which is number `ordinal`. No error is the
/// device's: a client could provoke them all.
Result<Memory> OpenCudaShared(int ordinal, std::string_view handle);

}  // namespace tilewire::engine
