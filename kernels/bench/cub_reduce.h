// NVIDIA's CUB as a peer of our reductions: sums of squared differences, f32 operands, then the root.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/array/status.h"

namespace tilewire::bench {

/// What CUB sums in.
enum class CubSum : uint8_t { kFloat, kDouble };

/// cub::DeviceReduce::TransformReduce over all n pairs; `result` one double. As CUB's own functions: with
/// null `scratch` only `*scratch_bytes` is set.
Status CubRmse(CubSum sum, const float* a, const float* b, int64_t n, double* result, void* scratch,
               size_t* scratch_bytes, cudaStream_t stream);

/// cub::DeviceSegmentedReduce::Reduce over `segments` contiguous segments of n pairs, in double.
Status CubSegmentedRmse(const float* a, const float* b, int64_t segments, int64_t n, double* result,
                        void* scratch, size_t* scratch_bytes, cudaStream_t stream);

}  // namespace tilewire::bench
