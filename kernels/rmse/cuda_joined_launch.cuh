// Which columns JoinedKernel takes, and in which shape.
#pragma once

#include <algorithm>
#include <numeric>

#include "kernels/rmse/cuda_blocks.cuh"
#include "kernels/rmse/cuda_joined.cuh"

namespace tilewire::rmse::cuda {

inline constexpr int kMostJoinedThreads = 1024, kUsualJoinedThreads = 512;
inline constexpr int64_t kLeastJoinedRows = 1024;

/// Whether the columns are JoinedKernel's: long ones of one reduced axis, rows that are no whole words; both
/// operands, and what each index of the outer axis has of them, begin at 16-byte boundaries; as many tiles as
/// fill the device.
template <typename E>
bool SuitsJoined(const Work& work) {
  constexpr int64_t kSize = sizeof(typename E::Type);
  const Layout& layout = work.layout;
  const int64_t width = layout.dims[layout.rank - 1], row = width * kSize;
  if (work.rows.axes != 1 || layout.reduced[layout.rank - 1] || work.rows.inner_stride != width ||
      layout.elements < kLeastJoinedRows || row > kMostJoinedThreads * 16 || row % 16 == 0)
    return false;
  const int64_t begin = work.range.segment_begin, segments = work.range.segment_end - begin;
  const int64_t outer = segments / width, item = layout.elements * row;
  const auto places = reinterpret_cast<uintptr_t>(work.a) | reinterpret_cast<uintptr_t>(work.b);
  return places % 16 == 0 && (item % 16 == 0 || (begin == 0 && outer == 1)) && begin % width == 0 &&
         segments % width == 0 && outer * (work.range.tile_end - work.range.tile_begin) >= Multiprocessors();
}

/// cudaErrorNotSupported, and nothing launched, where columns are not JoinedKernel's.
template <typename E>
cudaError_t LaunchJoined(const Work& work, const gpu::Launcher& launcher) {
  constexpr int kSize = sizeof(typename E::Type), kChains = kQueueChains<E, 16>, kDepth = 6;
  if (!SuitsJoined<E>(work)) return cudaErrorNotSupported;
  const int64_t width = work.layout.dims[work.layout.rank - 1];
  Joined c{};
  c.row_bytes = static_cast<int>(width) * kSize;
  c.group = 16 / std::gcd(c.row_bytes, 16);
  Stream& cut = c.cut;
  cut.width = width;
  cut.tiles = work.range.tile_end - work.range.tile_begin;
  cut.outer_begin = work.range.segment_begin / width;
  cut.lanes = c.row_bytes * c.group / 16;
  cut.phases = static_cast<int>(kAccumulators) / c.group / kChains;
  if constexpr (E::kExact) {  // any number of phases has the same sum
    const int64_t rows = std::min<int64_t>(kTileElements, work.layout.elements);
    cut.phases = 1;
    while (cut.lanes * cut.phases * 2 <= kUsualJoinedThreads && c.group * cut.phases * 2 * kChains <= rows)
      cut.phases *= 2;
  }
  const auto threads = static_cast<int>(CeilDiv(cut.lanes * cut.phases, 32) * 32);
  const int shared = std::max(2 * kDepth * 16 * threads, cut.phases * PhasePitch(cut.lanes, kWord<E>) * 8);
  if (threads > kMostJoinedThreads || shared > MostShared()) return cudaErrorNotSupported;
  const int64_t outer = (work.range.segment_end - work.range.segment_begin) / width;
  return LaunchShared(launcher, JoinedKernel<E, kDepth, kMostJoinedThreads>, outer * cut.tiles, threads,
                      shared, work, c);
}

}  // namespace tilewire::rmse::cuda
