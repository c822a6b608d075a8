// Transpose on the GPU. The only transpose header, with box_cuda.h, that knows CUDA types.
#pragma once

#include "kernels/array/launch_cuda.h"
#include "kernels/transpose/transpose.h"

namespace tilewire::transpose {

/// Launches the permutation of one band; `in` and `out` are device pointers to the whole arrays, aligned to
/// 16 bytes, which do not overlap. Reads aligned 16-byte vectors that hold a byte of the input, so `in` must
/// be readable up to the next multiple of 16 bytes. The engine's operands are both: its pool allocates
/// multiples of 512 bytes, and jobs that share an allocation begin at, and are padded to, multiples of 256.
/// With a launcher that lists, pointers may be null, and device copies are skipped. Returns the launch's
/// error. Thread-safe.
cudaError_t CudaRange(const Plan& plan, const Range& range, const void* in, void* out,
                      const gpu::Launcher& launcher);

}  // namespace tilewire::transpose
