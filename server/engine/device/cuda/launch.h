// What a lane enqueues for a piece of work, and what introspection lists for it: the same launches, by
// construction.
#pragma once

#include "kernels/array/launch_cuda.h"
#include "server/engine/device/device.h"

namespace tilewire::engine {

/// Passes the launches of `work` to `launcher`. With one that lists, pointers of `work` may be null. Returns
/// the launch's error.
cudaError_t Enqueue(const Work& work, const gpu::Launcher& launcher);

}  // namespace tilewire::engine
