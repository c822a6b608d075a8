// Which columns StreamKernel takes, and in which shape. The choices are those that measured fastest.
#pragma once

#include <algorithm>
#include <bit>

#include "kernels/rmse/cuda_blocks.cuh"
#include "kernels/rmse/cuda_columns.cuh"
#include "kernels/rmse/cuda_stream.cuh"

namespace tilewire::rmse::cuda {

/// One shape of the kernel. cudaErrorNotSupported where columns do not fit it.
template <typename E, int kV, bool kVector, int kRounds, int kBatch, int kLevels, int kMost = 256>
cudaError_t LaunchStreamAs(const Work& work, Stream c, const gpu::Launcher& launcher) {
  constexpr int kGroup = kBatch / kRounds, kBlocks = kBatch == 4 && kRounds == 1 ? 3 : 2;
  const int64_t outer = (work.range.segment_end - 1) / c.width + 1 - c.outer_begin;
  const int64_t rows = std::min<int64_t>(kTileElements, work.layout.elements);
  const int64_t pieces = kVector ? CeilDiv(c.width, kV) : CeilDiv(c.width, 32 * kV) * 32;
  const int64_t period =
      std::clamp<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)), kGroup, kAccumulators);
  // Few phases leave most of the tree to registers; more of them fill the device.
  const int64_t wanted = Multiprocessors() * 4096, most_chains = int64_t{kGroup} << kLevels;
  const int64_t most_phases = std::min<int64_t>(period / kGroup, kVector ? kMost / 4 : 8);
  int64_t phases = 1;
  while (phases < most_phases && (period / phases > most_chains || phases * pieces < 256 ||
                                  phases * pieces * outer * c.tiles < wanted))
    phases *= 2;
  int64_t lanes = std::max<int64_t>(kMost / phases, 32);
  if (kVector) {
    lanes = std::max<int64_t>(kMost / phases, 8);
    lanes = CeilDiv(pieces, CeilDiv(pieces, lanes));
  }
  const int64_t shared = phases == 1 ? 0 : phases * PhasePitch(static_cast<int>(lanes), kV) * 8;
  if (period / phases > most_chains || lanes * phases > kMost || lanes * phases < 64 ||
      shared > kColumnShared)
    return cudaErrorNotSupported;
  c.phases = static_cast<int>(phases);
  c.period = static_cast<int>(period);
  c.groups = static_cast<int>(period / phases / kGroup);
  c.lanes = static_cast<int>(lanes);
  c.windows = CeilDiv(pieces, lanes);
  const int threads = static_cast<int>(CeilDiv(lanes * phases, 32) * 32);
  return LaunchBlocks(launcher, StreamKernel<E, kV, kVector, kRounds, kBatch, kLevels, kMost, kBlocks>,
                      outer * c.tiles * c.windows, threads, static_cast<int>(shared), work, c);
}

/// Segments of at most 1024 rows.
template <typename E, int kV, bool kVector>
cudaError_t LaunchFewRows(const Work& work, const Stream& c, const gpu::Launcher& launcher) {
  const int64_t rows = work.layout.elements;
  if (rows <= 4) return LaunchStreamAs<E, kV, kVector, 1, 4, 0>(work, c, launcher);
  if (rows <= 8) return LaunchStreamAs<E, kV, kVector, 1, 8, 0>(work, c, launcher);
  if (rows <= 256) return LaunchStreamAs<E, kV, kVector, 1, 8, 3>(work, c, launcher);
  if (rows <= 512) return LaunchStreamAs<E, kV, kVector, 2, 8, 3>(work, c, launcher);
  return LaunchStreamAs<E, kV, kVector, 4, 8, 4>(work, c, launcher);
}

/// cudaErrorNotSupported, and nothing launched, where ColumnKernel is the better one.
template <typename E>
cudaError_t LaunchStream(const Work& work, const Columns& columns, const gpu::Launcher& launcher) {
  constexpr int kSize = static_cast<int>(sizeof(typename E::Type));
  if (columns.run != 1 || columns.map.axes != 1) return cudaErrorNotSupported;
  Stream c{};
  c.width = columns.width;
  c.outer_begin = work.range.segment_begin / c.width;
  c.tiles = work.range.tile_end - work.range.tile_begin;
  c.stride = columns.map.inner_stride * kSize;
  const auto places = reinterpret_cast<uintptr_t>(work.a) | reinterpret_cast<uintptr_t>(work.b);
  const auto fits = [&](int v) { return places % static_cast<unsigned>(v * kSize) == 0 && c.width % v == 0; };
  const int64_t rows = work.layout.elements;
  const bool few = rows <= 1024;
  // Pieces of 16 bytes take too many registers where a column's tree is deep.
  constexpr int kWide = kSize == 8 ? 2 : kSize == 1 ? 8 : 4, kNarrow = kSize == 1 ? 4 : 2;
  const bool narrow = kSize == 4 ? rows > 8 && (rows <= 256 || rows > 512) : kSize == 1 && rows <= 4;
  if (few && fits(kWide) && !narrow) return LaunchFewRows<E, kWide, true>(work, c, launcher);
  if constexpr (kSize == 4 || kSize == 1) {
    if (few && fits(kNarrow) && (kSize > 1 || narrow))
      return LaunchFewRows<E, kNarrow, true>(work, c, launcher);
  }
  const int64_t warp_columns = CeilDiv(c.width, 64) * 64;
  const bool full = c.width >= 200 && warp_columns * 4 <= c.width * 5;
  if (few && full && (kSize > 1 || rows <= 256)) return LaunchFewRows<E, 2, false>(work, c, launcher);
  if (few) return cudaErrorNotSupported;
  // Columns 32 apart have eight phases at most, which do not fill the device where the array is small.
  const int64_t outer = (work.range.segment_end - 1) / c.width + 1 - c.outer_begin;
  const bool many = full && outer * c.tiles * c.width * 4 >= Multiprocessors() * 448;
  if constexpr (kSize >= 4) {
    if (many) return LaunchStreamAs<E, 2, false, 8, 8, 5>(work, c, launcher);
    if (c.width <= 16 && fits(kWide)) return LaunchStreamAs<E, kWide, true, 8, 8, 2>(work, c, launcher);
    if (c.width <= 16 && fits(2)) return LaunchStreamAs<E, 2, true, 8, 8, 2>(work, c, launcher);
  } else if constexpr (kSize == 2) {
    if (fits(kWide)) return LaunchStreamAs<E, kWide, true, 4, 4, 2, 512>(work, c, launcher);
    if (many) return LaunchStreamAs<E, 2, false, 8, 8, 5>(work, c, launcher);
  } else {
    if (c.width <= 16 && fits(kWide)) return LaunchStreamAs<E, kWide, true, 8, 8, 2>(work, c, launcher);
    if (fits(kWide) && c.width % 16 != 0)
      return LaunchStreamAs<E, kWide, true, 4, 4, 2, 512>(work, c, launcher);
  }
  return cudaErrorNotSupported;
}

}  // namespace tilewire::rmse::cuda
