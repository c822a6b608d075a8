// Which family of kernels for which box; the choice within a family is in cuda_elements.cuh.
#include "kernels/transpose/box_cuda.h"
#include "kernels/transpose/cuda_rows.cuh"
#include "kernels/transpose/transpose_cuda.h"

namespace tilewire::transpose {
namespace {

constexpr int64_t kMinRowBytes = 128;  // shorter rows would waste much of the sectors that they are read in

/// Whether every offset from the box's first element fits a Divider<uint32_t>. (Kernels form no offset
/// outside it.)
bool FitsIn31Bits(const Box& box) {
  int64_t in_span = 0, out_span = 0;
  for (int a = 0; a < box.rank; ++a) {
    in_span += box.dims[a] * box.in_strides[a];
    out_span += box.dims[a] * box.out_strides[a];
  }
  constexpr int64_t kLimit = int64_t{1} << 31;
  return in_span < kLimit && out_span < kLimit;
}

}  // namespace

cudaError_t CudaBox(const Box& box, const void* in, void* out, OffsetBits bits,
                    const gpu::Launcher& launcher) {
  const auto* from = static_cast<const char*>(in) + box.in_offset * box.element_bytes;
  auto* to = static_cast<char*>(out) + box.out_offset * box.element_bytes;
  if (box.rank == 0 || (box.rank == 1 && box.CopiesRows())) {
    if (launcher.lists()) return cudaSuccess;
    return cudaMemcpyAsync(to, from, static_cast<size_t>(box.elements() * box.element_bytes),
                           cudaMemcpyDeviceToDevice, launcher.stream());
  }
  if (SuitsRows(box, kMinRowBytes)) return LaunchRows(box, from, to, launcher);
  const bool narrow = bits == OffsetBits::kWhatFits && FitsIn31Bits(box);
  switch (box.element_bytes) {
    case 1:
      return LaunchElements<1>(box, from, to, narrow, launcher);
    case 2:
      return LaunchElements<2>(box, from, to, narrow, launcher);
    case 4:
      return LaunchElements<4>(box, from, to, narrow, launcher);
    case 8:
      return LaunchElements<8>(box, from, to, narrow, launcher);
    default:
      return LaunchElements<16>(box, from, to, narrow, launcher);
  }
}

cudaError_t CudaRange(const Plan& plan, const Range& range, const void* in, void* out,
                      const gpu::Launcher& launcher) {
  return CudaBox(MakeBox(plan.layout(), range), in, out, OffsetBits::kWhatFits, launcher);
}

}  // namespace tilewire::transpose
