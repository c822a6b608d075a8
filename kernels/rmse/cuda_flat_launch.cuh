// Which columns FlatKernel takes, and in which shape.
#pragma once

#include <algorithm>
#include <numeric>

#include "kernels/rmse/cuda_blocks.cuh"
#include "kernels/rmse/cuda_flat.cuh"

namespace tilewire::rmse::cuda {

inline constexpr int kMostFlatThreads = 1024, kUsualFlatThreads = 512;
inline constexpr int64_t kLeastFlatRows = 1024;

/// Whether the columns are FlatKernel's: long ones of one reduced axis, rows that are no whole words, both
/// operands and all that is outside at words; as many tiles as fill the device.
template <typename E>
bool IsFlat(const Work& work) {
  constexpr int64_t kSize = sizeof(typename E::Type);
  const Layout& layout = work.layout;
  const int64_t width = layout.dims[layout.rank - 1], row = width * kSize;
  if (work.rows.axes != 1 || layout.reduced[layout.rank - 1] || work.rows.inner_stride != width ||
      layout.elements < kLeastFlatRows || row > kMostFlatThreads * 16 || row % 16 == 0)
    return false;
  const int64_t segments = work.range.segment_end - work.range.segment_begin, outer = segments / width;
  const auto places = reinterpret_cast<uintptr_t>(work.a) | reinterpret_cast<uintptr_t>(work.b);
  return places % 16 == 0 && (outer == 1 || layout.elements * row % 16 == 0) &&
         work.range.segment_begin % width == 0 && segments % width == 0 &&
         outer * (work.range.tile_end - work.range.tile_begin) >= Multiprocessors();
}

/// cudaErrorNotSupported, and nothing launched, where columns are not FlatKernel's.
template <typename E>
cudaError_t LaunchFlat(const Work& work, const gpu::Launcher& launcher) {
  constexpr int kSize = sizeof(typename E::Type), kChains = kQueueChains<E, 16>, kDepth = 6;
  if (!IsFlat<E>(work)) return cudaErrorNotSupported;
  const int64_t width = work.layout.dims[work.layout.rank - 1];
  Flat c{};
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
    while (cut.lanes * cut.phases * 2 <= kUsualFlatThreads && c.group * cut.phases * 2 * kChains <= rows)
      cut.phases *= 2;
  }
  const auto threads = static_cast<int>(CeilDiv(cut.lanes * cut.phases, 32) * 32);
  const int pitch = cut.lanes * kWord<E> + (cut.lanes < 16 ? cut.lanes : 0);  // as in AddPhases
  const int shared = std::max(2 * kDepth * 16 * threads, cut.phases * pitch * 8);
  if (threads > kMostFlatThreads || shared > MostShared()) return cudaErrorNotSupported;
  const int64_t outer = (work.range.segment_end - work.range.segment_begin) / width;
  return LaunchShared(launcher, FlatKernel<E, kDepth, kMostFlatThreads>, outer * cut.tiles, threads, shared,
                      work, c);
}

}  // namespace tilewire::rmse::cuda
