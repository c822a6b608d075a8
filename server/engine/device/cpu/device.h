// The CPU behind the device seam: host memory, host kernels, the same pipeline and the same bits as a GPU.
#pragma once

#include <memory>

#include "server/engine/device/device.h"

namespace tilewire::engine {

/// A device whose memory is host memory. `threads`: how many compute at once for one lane (0: all that this
/// process may use). Each lane adds a thread of its own, which computes too.
std::unique_ptr<Device> OpenCpuDevice(int threads);

/// A lane beside those of another device, for work so small that a launch there would take longer: whoever
/// helps computes, else a thread of its own. All memory is the host's.
std::unique_ptr<Lane> MakeHostLane();

}  // namespace tilewire::engine
