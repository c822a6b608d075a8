// Gaussian pdf on the GPU: which packs fit the addresses, and the launches.
#include <algorithm>

#include "kernels/gaussian/cuda_pdf.cuh"
#include "kernels/gaussian/gaussian_cuda.h"

namespace tilewire::gaussian {
namespace cuda {
namespace {

constexpr int kPackBytes = 16;
constexpr int64_t kMaxGrid = int64_t{1} << 30;

/// All of `work` in packs of kWidth elements, in several grids where one would be too large. The grid has one
/// tile more than the packs fill, if only for the edges.
template <typename Format, int kWidth, int kPacks>
cudaError_t Launch(Work<Format> work, const gpu::Launcher& launcher) {
  constexpr int64_t kTile = int64_t{kThreads} * kPacks;
  constexpr int64_t kMost = kMaxGrid * kTile * kWidth;
  for (int64_t left = work.count; left > 0;) {
    work.count = std::min(left, kMost + work.head);
    work.packs = std::max<int64_t>(work.count - work.head, 0) / kWidth;
    const auto grid = static_cast<unsigned>(work.packs / kTile + 1);
    const cudaError_t error =
        launcher.Run(PdfKernel<Format, kWidth, kPacks>, dim3(grid), dim3(kThreads), 0, work);
    if (error != cudaSuccess) return error;
    work.in += work.count;
    work.out += work.count;
    left -= work.count;
    work.head = 0;
  }
  return cudaSuccess;
}

/// Packs of 16 bytes where input and output are equally far from a multiple of 16, else single elements. Two
/// and four of them a thread were the fastest; more cost registers, and with them threads.
template <typename Format>
cudaError_t LaunchWidth(Work<Format> work, const gpu::Launcher& launcher) {
  using T = typename Format::Type;
  constexpr int kWidth = kPackBytes / sizeof(T);
  const auto in = reinterpret_cast<uintptr_t>(work.in), out = reinterpret_cast<uintptr_t>(work.out);
  if (in % kPackBytes == out % kPackBytes) {
    work.head = static_cast<int>((kPackBytes - in % kPackBytes) % kPackBytes / sizeof(T));
    return Launch<Format, kWidth, 2>(work, launcher);
  }
  work.head = 0;
  return Launch<Format, 1, 4>(work, launcher);
}

template <typename Format>
cudaError_t LaunchRange(const Range& range, const void* in, void* out,
                        const typename Format::Constants& constants, const gpu::Launcher& launcher) {
  using T = typename Format::Type;
  return LaunchWidth(Work<Format>{.in = static_cast<const T*>(in) + range.begin,
                                  .out = static_cast<T*>(out) + range.begin,
                                  .count = range.end - range.begin,
                                  .packs = 0,
                                  .head = 0,
                                  .constants = constants},
                     launcher);
}

}  // namespace
}  // namespace cuda

cudaError_t CudaRange(const Plan& plan, const Range& range, const void* in, void* out,
                      const gpu::Launcher& launcher) {
  if (plan.input().dtype == DType::kF32)
    return cuda::LaunchRange<cuda::F32>(range, in, out, MakeF32Constants(plan.mean(), plan.stddev()),
                                        launcher);
  const F64Constants constants = MakeF64Constants(plan.mean(), plan.stddev());
  if (constants.plain) return cuda::LaunchRange<cuda::F64<true>>(range, in, out, constants, launcher);
  return cuda::LaunchRange<cuda::F64<false>>(range, in, out, constants, launcher);
}

}  // namespace tilewire::gaussian
