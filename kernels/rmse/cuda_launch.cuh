// Which kernel sums which layout, and in which shape. Included by the files that compile a group of kinds
// each.
#pragma once

#include <algorithm>
#include <bit>

#include "kernels/rmse/cuda_axes_launch.cuh"
#include "kernels/rmse/cuda_gather.cuh"
#include "kernels/rmse/cuda_group.cuh"
#include "kernels/rmse/cuda_joined_launch.cuh"
#include "kernels/rmse/cuda_padded_launch.cuh"
#include "kernels/rmse/cuda_relay_launch.cuh"
#include "kernels/rmse/cuda_staged_launch.cuh"
#include "kernels/rmse/cuda_stream_launch.cuh"
#include "kernels/rmse/cuda_tiles.cuh"
#include "kernels/rmse/rmse_cuda.h"

namespace tilewire::rmse::cuda {

/// `words` of a segment, at most 64.
template <typename E>
cudaError_t LaunchGroups(const Work& work, int64_t words, const gpu::Launcher& launcher) {
  const int64_t segments = work.range.segment_end - work.range.segment_begin;
  const int64_t lanes = std::min<int64_t>(std::bit_ceil(static_cast<uint64_t>(words)), 32);
  const int64_t blocks = CeilDiv(segments, kBlockThreads / lanes * kGroupBatch);
  const auto launch = [&](auto kernel) {
    return LaunchBlocks(launcher, kernel, blocks, kBlockThreads, 0, work);
  };
  if (words > 32) return launch(GroupKernel<E, 32, 2>);
  switch (lanes) {
    case 1:
      return launch(GroupKernel<E, 1, 1>);
    case 2:
      return launch(GroupKernel<E, 2, 1>);
    case 4:
      return launch(GroupKernel<E, 4, 1>);
    case 8:
      return launch(GroupKernel<E, 8, 1>);
    case 16:
      return launch(GroupKernel<E, 16, 1>);
    default:
      return launch(GroupKernel<E, 32, 1>);
  }
}

/// Contiguous segments of several tiles: how many tiles become one sum is a matter of how many sums remain to
/// be finished against how many warps fill the device.
template <typename E>
cudaError_t LaunchTiles(Work work, bool whole, int64_t* sums, const gpu::Launcher& launcher) {
  const int64_t segments = work.range.segment_end - work.range.segment_begin;
  const int64_t tiles = work.range.tile_end - work.range.tile_begin, processors = Multiprocessors();
  int64_t blocks = CeilDiv(segments * tiles, kWarps);
  if (whole && tiles < kWarps && segments > processors * kWarps * 8) {
    work.combine = Combine::kWarp;
    work.batch = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(tiles)));
    blocks = CeilDiv(segments, kWarps);
    work.sums_per_segment = *sums = 1;
  } else if (whole && tiles >= kWarps) {
    work.combine = Combine::kBlock;
    // Where segments fill the device, a block takes as much of one as it can.
    while (work.batch < 8 && tiles > work.batch * kWarps && segments > processors * kWarps) work.batch *= 2;
    // Long segments: half as many ends; integers' ends are short, and more warps are better.
    if (!E::kExact && tiles > processors * kWarps * 16) work.batch = std::max(work.batch, 2);
    work.sums_per_segment = *sums = CeilDiv(tiles, work.batch * kWarps);
    blocks = segments * *sums;
  }
  if (*sums > 1) work.result = nullptr;
  return LaunchBlocks(launcher, WarpKernel<E>, blocks, kBlockThreads, 0, work);
}

/// Contiguous segments whose operands are misaligned alike.
template <typename E>
cudaError_t LaunchContiguous(Work work, bool whole, int64_t* sums, const gpu::Launcher& launcher) {
  constexpr int64_t kN = kWord<E>;
  const int64_t tiles = work.range.tile_end - work.range.tile_begin;
  const bool aligned = reinterpret_cast<uintptr_t>(work.a) % 16 == 0 && work.layout.elements % kN == 0;
  const int64_t words = CeilDiv(work.layout.elements + (aligned ? 0 : kN - 1), kN);
  if (aligned) {
    const cudaError_t error = LaunchPadded<E>(work, words, launcher);
    if (error != cudaErrorNotSupported) return error;
  }
  if (words <= 64 && SuitsStaged<E>(work, words)) {
    const cudaError_t error = LaunchStaged<E>(work, work.layout.elements, 1, launcher);
    if (error != cudaErrorNotSupported) return error;
  }
  if (SuitsRelay<E>(work, words)) {
    const cudaError_t error = LaunchRelay<E>(work, launcher);
    if (error != cudaErrorNotSupported) return error;
  }
  if (words <= 64) return LaunchGroups<E>(work, words, launcher);
  const int64_t items = work.range.items(), processors = Multiprocessors();
  if (items <= processors * 16) {
    if (*sums > 1) work.result = nullptr;
    return LaunchBlocks(launcher, BlockKernel<E>, items, kBlockThreads, 0, work);
  }
  if (tiles > 1) return LaunchTiles<E>(work, whole, sums, launcher);
  if (*sums > 1) work.result = nullptr;
  while (work.batch < 4 && work.batch * processors * 128 < items) work.batch *= 2;
  const auto kernel = kN > 2 && words <= 128 ? SegmentKernel<E, 4> : SegmentKernel<E, 8>;
  return LaunchBlocks(launcher, kernel, CeilDiv(items, kWarps * work.batch), kBlockThreads, 0, work);
}

/// Which columns the layout has. False where it has none.
inline bool ColumnsOf(const Work& work, int64_t size, Columns* c) {
  const Layout& layout = work.layout;
  const int last = layout.rank - 1;
  if (last < 0) return false;
  c->run = 1;
  c->width = layout.dims[last];
  c->map = work.rows;
  if (layout.reduced[last]) {
    // [.., R, B, r]: rows of B · r elements, of which r neighbours belong to one segment.
    if (work.rows.axes != 2 || !std::has_single_bit(static_cast<uint64_t>(layout.dims[last])) ||
        layout.dims[last] * size > 64 || layout.dims[last] > kAccumulators)
      return false;
    c->run = static_cast<int>(layout.dims[last]);
    c->width = layout.dims[last - 1] * c->run;
    c->map = {
        .axes = 1, .inner = 0, .inner_stride = work.rows.outer_stride, .outer_stride = 0, .reciprocal = 0};
  }
  c->run_log2 = std::countr_zero(static_cast<unsigned>(c->run));
  c->rows_per_tile = static_cast<int>(kTileElements) >> c->run_log2;
  return true;
}

/// Shared bytes of a block that holds `sums` sums.
inline int64_t ColumnShared(int64_t sums) {
  return (sums + sums / 16) * 8;
}

/// Windows and threads for c->chains, about `usual`; words of `n` elements, `overlap` of them more in a row
/// than its columns fill.
inline void CutColumns(int64_t n, int64_t overlap, int64_t usual, Columns* c) {
  c->slab = c->period / c->chains;
  if (c->rows == Rows::kFlat) {
    c->words = c->threads = static_cast<int>(c->slab * c->width / n);
    c->window_columns = c->pitch = static_cast<int>(c->width);
    c->windows = 1;
    return;
  }
  const int64_t row_words = CeilDiv(c->width, n);
  const int64_t most = std::max<int64_t>(std::max<int64_t>(usual / c->slab, 4) - overlap, 1);
  int64_t columns = CeilDiv(row_words, CeilDiv(row_words, most)) * n;
  columns = CeilDiv(columns, c->run) * c->run;
  c->windows = CeilDiv(c->width, columns);
  c->words = static_cast<int>(CeilDiv(columns, n) + overlap);
  c->threads = c->words * c->slab;
  c->window_columns = c->pitch = static_cast<int>(columns);
}

template <typename E>
cudaError_t LaunchColumns(Work work, Columns c, const gpu::Launcher& launcher) {
  constexpr int64_t kSize = sizeof(typename E::Type), kN = kWord<E>;
  const auto a = reinterpret_cast<uintptr_t>(work.a), b = reinterpret_cast<uintptr_t>(work.b);
  const int64_t row_segments = c.width >> c.run_log2, row_bytes = c.width * kSize;
  c.outer_begin = work.range.segment_begin / row_segments;
  c.tiles = work.range.tile_end - work.range.tile_begin;
  c.items = ((work.range.segment_end - 1) / row_segments + 1 - c.outer_begin) * c.tiles;
  const int64_t rows = std::min<int64_t>(c.rows_per_tile, work.layout.elements >> c.run_log2);
  int64_t least_slab = 1;  // rows that are whole words
  while (least_slab * row_bytes % 16 != 0) least_slab *= 2;
  c.period = static_cast<int>(
      std::min<int64_t>(kAccumulators >> c.run_log2, std::bit_ceil(static_cast<uint64_t>(rows))));
  const bool aligned = a % 16 == 0 && b % 16 == 0 && least_slab == 1;
  // Rotated rows need slabs of whole words, and the operands alike.
  c.rows = Rows::kRotated;
  if (a % 16 != b % 16 || (!aligned && (c.map.axes != 1 || c.period / kMaxChains<E> < least_slab)))
    c.rows = Rows::kStraddle;
  // Flat slabs take whole rows, so only narrow ones fit a block.
  const int64_t flat_words = std::max<int64_t>(c.period / kMaxChains<E>, least_slab) * row_bytes / 16;
  if (a % 16 == b % 16 && c.map.axes == 1 && c.map.inner_stride == c.width && c.period >= least_slab &&
      row_bytes <= (least_slab > 1 ? 256 : 64) && flat_words <= kColumnThreads &&
      ColumnShared(flat_words * kN) <= kColumnShared)
    c.rows = Rows::kFlat;
  if (c.rows == Rows::kStraddle) least_slab = 1;
  // Chains: as many as leave enough threads to fill the device.
  const int64_t wanted = Multiprocessors() * 448;
  const int64_t all_words = c.items * CeilDiv(c.width, kN) * c.period;
  const int64_t overlap = c.rows == Rows::kRotated && !aligned ? 1 : 0;
  for (c.chains = 1;; c.chains *= 2) {
    CutColumns(kN, overlap, kColumnUsual<E>, &c);
    const bool fits = c.threads <= kColumnThreads && ColumnShared(c.threads * kN) <= kColumnShared;
    const bool more = c.chains < kMaxChains<E> && c.slab / 2 >= least_slab;
    if (!more || (fits && all_words / (c.chains * 2) < wanted)) break;
  }
  c.per_block = static_cast<int>(std::clamp<int64_t>(kColumnUsual<E> / c.threads, 1, c.items));
  const int threads = static_cast<int>(CeilDiv(c.threads * c.per_block, 32)) * 32;
  const int shared = static_cast<int>(ColumnShared(int64_t{c.per_block} * c.slab * c.pitch));
  const int64_t blocks = CeilDiv(c.items, c.per_block) * c.windows;
  if (c.rows == Rows::kStraddle)
    return LaunchBlocks(launcher, ColumnKernel<E, true>, blocks, threads, shared, work, c);
  return LaunchBlocks(launcher, ColumnKernel<E, false>, blocks, threads, shared, work, c);
}

template <Kind K>
cudaError_t LaunchKind(Work work, bool whole, int64_t* sums, const gpu::Launcher& launcher) {
  using E = Element<K>;
  const Layout& layout = work.layout;
  const auto a = reinterpret_cast<uintptr_t>(work.a), b = reinterpret_cast<uintptr_t>(work.b);
  const bool inner_reduced = layout.elements == 1 || layout.reduced[layout.rank - 1];
  const bool contiguous = inner_reduced && work.rows.axes == 1;
  *sums = work.sums_per_segment = layout.tiles;
  if (contiguous && a % 16 == b % 16) return LaunchContiguous<E>(work, whole, sums, launcher);
  if (layout.tiles > 1) work.result = nullptr;
  if (layout.rank == 3 && layout.reduced[1] && !layout.reduced[0]) {  // one middle axis
    const cudaError_t error = LaunchStaged<E>(work, layout.dims[1], layout.dims[2], launcher);
    if (error != cudaErrorNotSupported) return error;
  }
  Columns columns{};
  if (!contiguous && ColumnsOf(work, sizeof(typename E::Type), &columns)) {
    cudaError_t error = LaunchJoined<E>(work, launcher);
    if (error == cudaErrorNotSupported) error = LaunchQueue<E>(work, launcher);
    // Many neighbours' runs are whole lines, and need no tree over neighbouring columns.
    if (sizeof(typename E::Type) >= 4 && columns.run > 1 && columns.width >= 32 * columns.run &&
        layout.elements >= 1024)
      error = LaunchWalk<E>(work, launcher);
    if (error == cudaErrorNotSupported) error = LaunchStream<E>(work, columns, launcher);
    return error != cudaErrorNotSupported ? error : LaunchColumns<E>(work, columns, launcher);
  }
  if (layout.elements <= kTinyElements)
    return LaunchBlocks(launcher, TinyKernel<E>,
                        CeilDiv(work.range.segment_end - work.range.segment_begin, kBlockThreads),
                        kBlockThreads, 0, work);
  const int64_t blocks = CeilDiv(work.range.items(), kWarps);
  const bool whole_words =
      !contiguous && a % 16 == 0 && b % 16 == 0 && layout.dims[layout.rank - 1] % kWord<E> == 0;
  if (!whole_words || sizeof(typename E::Type) >= 4) {
    const cudaError_t error = LaunchWalk<E>(work, launcher);
    if (error != cudaErrorNotSupported) return error;
  }
  if (whole_words) return LaunchBlocks(launcher, RunKernel<E>, blocks, kBlockThreads, 0, work);
  if (contiguous || layout.dims[layout.rank - 1] >= kWord<E>)
    return LaunchBlocks(launcher, StraddleKernel<E>, blocks, kBlockThreads, 0, work);
  return LaunchBlocks(launcher, GatherKernel<E>, blocks, kBlockThreads, 0, work);
}

}  // namespace tilewire::rmse::cuda
