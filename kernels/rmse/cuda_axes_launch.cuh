// Which layouts of several reduced axes WalkKernel and QueueKernel take, and in which shape. The choices are
// those that measured fastest.
#pragma once

#include <algorithm>
#include <bit>

#include "kernels/rmse/cuda_blocks.cuh"
#include "kernels/rmse/cuda_queue.cuh"
#include "kernels/rmse/cuda_staged_launch.cuh"
#include "kernels/rmse/cuda_walk.cuh"

namespace tilewire::rmse::cuda {

inline constexpr int64_t kMostExtent = int64_t{1} << 30;  // whose indices are 32-bit ones

/// A block for `kG` neighbouring segments.
template <typename E, int kG>
cudaError_t LaunchWalkAs(const Work& work, Walk c, const gpu::Launcher& launcher) {
  constexpr uint32_t kStep = kBlockThreads / kG;
  const uint32_t row = kStep / c.extents[0];
  c.digits[0] = kStep % c.extents[0];
  c.digits[1] = row % c.extents[1];
  c.step = c.digits[0] * c.strides[0] + c.digits[1] * c.strides[1] + row / c.extents[1] * c.strides[2];
  c.groups = CeilDiv(c.end - c.begin, kG);
  const uint32_t chunk = std::bit_ceil(c.extents[0]);
  c.chunk_log2 = chunk >= 32 ? std::countr_zero(kStep) : std::countr_zero(chunk);
  const int64_t outer = (work.range.segment_end - 1) / c.neighbours + 1 - c.outer_begin;
  return LaunchBlocks(launcher, WalkKernel<E, kG>, outer * c.tiles * c.groups, kBlockThreads, 0, work, c);
}

/// Describes the layout. False where it has more than three reduced axes, or very long ones.
template <typename E>
bool WalkOf(const Work& work, Walk* c) {
  constexpr int64_t kSize = sizeof(typename E::Type);
  const Layout& layout = work.layout;
  int reduced = 0, batch = -1;
  int64_t extents[3] = {kMostExtent, kMostExtent, kMostExtent};
  for (int axis = layout.rank - 1; axis >= 0; --axis) {
    if (!layout.reduced[axis]) {
      batch = std::max(batch, axis);
      continue;
    }
    if (reduced == 3) return false;
    extents[reduced] = layout.dims[axis];
    c->strides[reduced++] = layout.strides[axis] * kSize;
  }
  // The outermost axis does not end within a segment: its indices are taken as two digits. The product wraps
  // where steps are so long that no array has an index for the second one.
  const auto times = [](int64_t extent, int64_t stride) {
    return static_cast<int64_t>(static_cast<uint64_t>(extent) * static_cast<uint64_t>(stride));
  };
  if (reduced > 0) extents[reduced - 1] = kMostExtent;
  if (reduced == 1 || reduced == 2) c->strides[reduced] = times(kMostExtent, c->strides[reduced - 1]);
  if (extents[0] > kMostExtent || extents[1] > kMostExtent) return false;
  for (int i = 0; i < 2; ++i) {
    c->extents[i] = static_cast<uint32_t>(extents[i]);
    if (i < reduced) c->carries[i] = c->strides[i + 1] - times(extents[i], c->strides[i]);
  }
  c->tiles = work.range.tile_end - work.range.tile_begin;
  c->neighbours = c->end = 1;
  if (batch < 0) return true;
  c->neighbours = c->end = layout.dims[batch];
  c->neighbour_bytes = layout.strides[batch] * kSize;
  c->outer_begin = work.range.segment_begin / c->neighbours;
  // A range holds all neighbours, but where their axis is the outermost one.
  if (work.range.segment_end - work.range.segment_begin < c->neighbours) {
    c->begin = work.range.segment_begin - c->outer_begin * c->neighbours;
    c->end = c->begin + work.range.segment_end - work.range.segment_begin;
  }
  return true;
}

/// Runs, and contiguous segments whose operands are misaligned differently. cudaErrorNotSupported, and
/// nothing launched, where another kernel is the better one.
template <typename E>
cudaError_t LaunchWalk(const Work& work, const gpu::Launcher& launcher) {
  constexpr int64_t kSize = sizeof(typename E::Type);
  Walk c{};
  if (!WalkOf<E>(work, &c)) return cudaErrorNotSupported;
  const int64_t run = c.extents[0], count = c.end - c.begin;
  if (run >= 256 && (kSize == 1 || (kSize == 2 && work.rows.axes == 1))) return cudaErrorNotSupported;
  const bool filled = CeilDiv(count, 8) * 32 <= count * 5;  // at most a fifth of the threads is idle
  const bool is_short = work.layout.elements < 1024;        // most threads of a block of one would be idle
  if (run < 16 && !is_short ? count >= 4 : filled && (is_short || kSize <= 2 || run * kSize < 256))
    return LaunchWalkAs<E, 8>(work, c, launcher);
  if (is_short) return cudaErrorNotSupported;
  return count >= 2 ? LaunchWalkAs<E, 2>(work, c, launcher) : LaunchWalkAs<E, 1>(work, c, launcher);
}

/// One shape of the kernel, for about `most` threads a block. cudaErrorNotSupported where columns do not fit
/// it.
template <typename E, int kPiece, int kDepth, int kMost, int kBlocks>
cudaError_t LaunchQueueAs(const Work& work, int most, const gpu::Launcher& launcher) {
  constexpr int64_t kSize = sizeof(typename E::Type), kChains = kQueueChains<E, kPiece>, kN = kPiece / kSize;
  const Layout& layout = work.layout;
  const int64_t width = layout.dims[layout.rank - 1], processors = Multiprocessors();
  const int64_t inner = work.rows.axes > 1 ? work.rows.inner : kMostExtent;
  if (inner > kMostExtent || (work.rows.axes == 1 && layout.elements > kMostExtent))
    return cudaErrorNotSupported;
  Queue c{};
  Stream& cut = c.cut;
  const int64_t rows = std::min<int64_t>(kTileElements, layout.elements);
  cut.period = static_cast<int>(
      std::clamp<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)), kChains, kAccumulators));
  cut.phases = cut.period / static_cast<int>(kChains);
  cut.width = width;
  cut.tiles = work.range.tile_end - work.range.tile_begin;
  cut.outer_begin = work.range.segment_begin / width;
  cut.stride = work.rows.inner_stride * kSize;
  const int64_t outer = (work.range.segment_end - 1) / width + 1 - cut.outer_begin;
  c.row_pieces = width * kSize / kPiece;
  for (int64_t lanes = std::max(most / cut.phases, 1);; lanes = CeilDiv(lanes, 2)) {
    cut.lanes = static_cast<int>(CeilDiv(c.row_pieces, CeilDiv(c.row_pieces, lanes)));
    cut.windows = CeilDiv(c.row_pieces, cut.lanes);
    // Long pieces of rows are read fastest, but all of the device must be at work.
    if (lanes * cut.phases <= 128 || outer * cut.tiles * cut.windows * 2 > processors) break;
  }
  c.outer_stride = work.rows.axes > 1 ? work.rows.outer_stride * kSize : 0;
  c.inner = static_cast<uint32_t>(inner);
  c.digit = static_cast<uint32_t>(cut.phases % inner);
  c.step = c.digit * cut.stride + cut.phases / inner * c.outer_stride;
  c.carry = c.outer_stride - inner * cut.stride;
  const int64_t threads = CeilDiv(int64_t{cut.lanes} * cut.phases, 32) * 32;
  const int64_t pitch = PhasePitch(cut.lanes, static_cast<int>(kN));
  const auto shared = static_cast<int>(std::max(2 * kDepth * kPiece * threads, cut.phases * pitch * 8));
  if (threads > kMost || threads < 64 || shared > MostShared()) return cudaErrorNotSupported;
  return LaunchShared(launcher, QueueKernel<E, kPiece, kDepth, kMost, kBlocks>,
                      outer * cut.tiles * cut.windows, static_cast<int>(threads), shared, work, c);
}

/// Columns of whole words.
template <typename E>
cudaError_t LaunchQueueOfWords(const Work& work, const gpu::Launcher& launcher) {
  constexpr int64_t kSize = sizeof(typename E::Type);
  const int64_t width = work.layout.dims[work.layout.rank - 1], words = width * kSize / 16;
  const int64_t outer = (work.range.segment_end - work.range.segment_begin) / width;
  const int64_t blocks = outer * (work.range.tile_end - work.range.tile_begin) * CeilDiv(words, 8);
  const int64_t processors = Multiprocessors();
  const bool one = work.rows.axes == 1;  // where others are good, too
  if (one && (work.layout.elements < kTileElements || blocks < processors)) return cudaErrorNotSupported;
  if constexpr (E::kExact || kSize == 8) {
    if (one && (kSize != 1 || words < 4)) return cudaErrorNotSupported;
    return LaunchQueueAs<E, 16, 6, 512, 2>(work, 512, launcher);
  } else if constexpr (kSize == 2) {
    // Narrow rows are the others' (f16, × 16: 94% of the read rate there, 87% here).
    if (work.layout.elements < 2048 || (one && words < 8)) return cudaErrorNotSupported;
    return LaunchQueueAs<E, 16, 6, 1024, 1>(work, 1024, launcher);
  } else {
    if (one && (words < 8 || width >= 200)) return cudaErrorNotSupported;
    // Where the device takes few blocks, larger ones leave fewer processors idle at the end.
    if (blocks <= processors * 2) return LaunchQueueAs<E, 16, 6, 1024, 1>(work, 1024, launcher);
    return LaunchQueueAs<E, 16, 12, 512, 1>(work, 512, launcher);
  }
}

/// Columns of long segments with one or two reduced axes. cudaErrorNotSupported, and nothing launched, where
/// another kernel is the better one.
template <typename E>
cudaError_t LaunchQueue(const Work& work, const gpu::Launcher& launcher) {
  constexpr int64_t kSize = sizeof(typename E::Type);
  const Layout& layout = work.layout;
  if (work.rows.axes > 2 || layout.reduced[layout.rank - 1] || layout.elements < 1024)
    return cudaErrorNotSupported;
  const auto places = reinterpret_cast<uintptr_t>(work.a) | reinterpret_cast<uintptr_t>(work.b) |
                      static_cast<uintptr_t>(layout.dims[layout.rank - 1] * kSize);
  if (places % 16 == 0) return LaunchQueueOfWords<E>(work, launcher);
  if (work.rows.axes == 1) return cudaErrorNotSupported;
  if constexpr (kSize >= 4) {
    if (places % 8 == 0) return LaunchQueueAs<E, 8, 12, 256, 3>(work, 256, launcher);
  }
  if constexpr (kSize <= 4) {
    if (places % 4 == 0) return LaunchQueueAs<E, 4, 12, 256, 4>(work, 256, launcher);
  }
  return cudaErrorNotSupported;
}

}  // namespace tilewire::rmse::cuda
