// Describing compiled kernels: what the CUDA device answers for Device::DescribeWork and DescribeLadder.
#pragma once

#include <vector>

#include "server/engine/device/cuda/error.h"
#include "server/engine/device/device.h"

namespace tilewire::engine {

/// The kernels of `work` as compiled for device `ordinal`, which becomes the calling thread's. Failures are
/// noted in `health`. Thread-safe.
Result<std::vector<KernelInfo>> DescribeCudaWork(int ordinal, const Work& work, CudaHealth* health);

/// Every launch of every ladder step: f32, 2048 × 2048 elements, batched RMSE 1024 × 1024 × 16.
Result<std::vector<LadderKernel>> DescribeCudaLadder(int ordinal, CudaHealth* health);

}  // namespace tilewire::engine
