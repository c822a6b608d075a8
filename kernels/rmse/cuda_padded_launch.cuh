// Which contiguous segments PaddedKernel takes, and in which shape. The choices are those that measured
// fastest.
#pragma once

#include <bit>

#include "kernels/rmse/cuda_blocks.cuh"
#include "kernels/rmse/cuda_padded.cuh"

namespace tilewire::rmse::cuda {

/// Segments that begin at words and are up to 32 long. cudaErrorNotSupported, and nothing launched, where
/// another kernel is the better one: GroupKernel where it leaves no lane idle, or where there are too few
/// segments to fill the device.
template <typename E>
cudaError_t LaunchPadded(const Work& work, int64_t words, const gpu::Launcher& launcher) {
  if constexpr (sizeof(typename E::Type) == 2 && !E::kExact) {
    const int64_t segments = work.range.segment_end - work.range.segment_begin;
    const auto period = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(words)));
    if (words > 32 || words == period) return cudaErrorNotSupported;
    const int threads = 1024 / period;
    if (segments < Multiprocessors() * threads * 2) return cudaErrorNotSupported;
    // Even numbers of words share banks, two threads one, or four. That costs less than the gaps that would
    // part them, but where eight do, or where long segments leave few threads.
    const bool apart = words % 4 == 0 && (words % 8 == 0 || words > 24);
    const Padded c{.words = static_cast<int>(words), .pitch = static_cast<int>(apart ? words + 1 : words)};
    const int shared = 2 * threads * c.pitch * 16;
    const auto launch = [&](auto kernel) {
      return LaunchShared(launcher, kernel, CeilDiv(segments, threads), threads, shared, work, c);
    };
    switch (period) {
      case 4:
        return launch(PaddedKernel<E, 4>);
      case 8:
        return launch(PaddedKernel<E, 8>);
      case 16:
        return launch(PaddedKernel<E, 16>);
      default:
        return launch(PaddedKernel<E, 32>);
    }
  }
  return cudaErrorNotSupported;
}

}  // namespace tilewire::rmse::cuda
