// Boxes on the GPU: what a band becomes, open to tests that want a certain kernel.
#pragma once

#include "kernels/array/launch_cuda.h"
#include "kernels/transpose/box.h"

namespace tilewire::transpose {

/// What kernels count offsets with. 64 bits always work; 32 are faster, where the box spans less than 2^31
/// elements on both sides.
enum class OffsetBits { kWhatFits, k64 };

/// Launches the copy of a box. `in` and `out` are device pointers to the whole arrays, as in CudaRange().
/// Returns the launch's error. Thread-safe.
cudaError_t CudaBox(const Box& box, const void* in, void* out, OffsetBits bits,
                    const gpu::Launcher& launcher);

/// The part of CudaBox() that depends on the element's size, for boxes of rank 2 or more; the pointers are to
/// the box's first element.
template <int kElementBytes>
cudaError_t LaunchElements(const Box& box, const char* in, char* out, bool offsets_fit_31_bits,
                           const gpu::Launcher& launcher);

}  // namespace tilewire::transpose
