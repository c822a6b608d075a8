// Device work that is not measured for its own sake but measures others: random data, plain copies and reads,
// and an independent check of permutations. All of it only enqueues.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "kernels/array/dtype.h"
#include "kernels/array/status.h"

namespace tilewire::bench {

/// Random elements by a counter hash, the same for the same seed: floats uniform in [-1, 1), integers any
/// value, bool 0 or 1. Both parts of complex elements are floats.
Status FillRandom(DType dtype, void* data, int64_t elements, uint64_t seed, cudaStream_t stream);
/// Random bytes, whatever they mean. `data` is aligned to 8.
Status FillRandomBytes(void* data, int64_t bytes, uint64_t seed, cudaStream_t stream);

/// Copies with 16-byte accesses, one a thread. `bytes` is a multiple of 16.
Status CopyVectors(const void* in, void* out, int64_t bytes, cudaStream_t stream);
/// Reads with 16-byte accesses, eight in flight a thread, and writes nothing but (never, for random data)
/// `sink`, 4 bytes. `bytes` is a multiple of 16.
Status ReadVectors(const void* in, int64_t bytes, uint32_t* sink, cudaStream_t stream);
/// A kernel of one thread that does nothing.
Status EmptyKernel(cudaStream_t stream);

/// Adds to `*wrong` (device) how many elements of `out` are not those of `in` with axes permuted: output axis
/// i is input axis axes[i]. Plain division for every element. `element_bytes`: 1, 2, 4, 8 or 16.
Status CountWrong(const void* in, const void* out, std::span<const int64_t> shape,
                  std::span<const int32_t> axes, int element_bytes, unsigned long long* wrong,
                  cudaStream_t stream);

}  // namespace tilewire::bench
