// How a block's threads share tiles, and the launch.
#pragma once

#include <algorithm>

#include "kernels/compare/cuda_words.cuh"

namespace tilewire::compare::cuda {

/// Multiprocessors of the current device.
inline int64_t Multiprocessors() {
  int device = 0, count = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
    return 1;
  return count;
}

inline int Log2Up(int64_t x) {
  return std::bit_width(static_cast<uint64_t>(x) - 1);
}

/// `size`: of an element, bytes.
inline Cut CutOf(const rmse::Layout& layout, const rmse::Range& range, int size) {
  constexpr int kAloneBytes =
      128;  // of a contiguous segment that one thread takes: lines that it gets at once
  constexpr int kAloneElements = 64;  // of columns
  constexpr int kGroupElements =
      1024;                           // of segments that share a block; longer ones have blocks of their own
  constexpr int64_t kBlocksEach = 4;  // blocks a multiprocessor that are enough
  const int64_t segments = range.segment_end - range.segment_begin;
  const int64_t blocks = kBlocksEach * Multiprocessors(), n = std::min(layout.elements, rmse::kTileElements);
  const bool columns = layout.rank > 0 && !layout.reduced[layout.rank - 1] && layout.elements > 1;
  Cut cut{.residues_log2 = 8, .period_log2 = std::clamp(Log2Up(n), 3, 8), .leaves = 1, .neighbours = columns};
  if ((columns ? n <= kAloneElements : n * size <= kAloneBytes) && segments >= blocks * kThreads) {
    cut.residues_log2 = 0;
  } else if (columns) {
    const int wide = Log2Up(std::min<int64_t>(layout.dims[layout.rank - 1], 32));
    cut.residues_log2 = std::min(8 - wide, cut.period_log2);
  } else if (n <= kGroupElements && segments >= blocks * (kThreads >> std::max(3, cut.period_log2 - 3))) {
    cut.residues_log2 = std::max(3, cut.period_log2 - 3);
  } else {
    cut.residues_log2 = cut.period_log2;
  }
  if (cut.period_log2 - cut.residues_log2 >= 3) cut.leaves = 8;
  return cut;
}

/// A thread goes on by `elements` at a time.
inline void SetStep(uint32_t elements, Rows* rows) {
  if (rows->walk != Walk::kDigits) return;
  const uint32_t row = elements / rows->extents[0], outer = row / rows->extents[1];
  rows->digits[0] = elements % rows->extents[0];
  rows->digits[1] = row % rows->extents[1];
  rows->step =
      rows->digits[0] * rows->strides[0] + rows->digits[1] * rows->strides[1] + outer * rows->strides[2];
}

/// Launches `blocks` blocks, in several grids where one would be too large.
inline cudaError_t LaunchBlocks(const gpu::Launcher& launcher, void (*kernel)(Work), int64_t blocks,
                                Work work) {
  for (int64_t base = 0; base < blocks; base += kMaxGrid) {
    work.block_base = base;
    const auto width = static_cast<unsigned>(std::min(kMaxGrid, blocks - base));
    if (const cudaError_t error = launcher.Run(kernel, dim3(width), dim3(kThreads), 0, work);
        error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}

/// Whether a warp for each tile keeps the device at work, and all its words are whole.
inline bool InWords(const Work& work, int64_t size) {
  constexpr int64_t kWarpsEach = 16;  // tiles a multiprocessor that are enough
  const rmse::Layout& layout = work.layout;
  return layout.rank > 0 && layout.reduced[layout.rank - 1] && work.rows.walk == Walk::kEven &&
         layout.elements >= rmse::kTileElements && work.range.items() >= kWarpsEach * Multiprocessors() &&
         reinterpret_cast<uintptr_t>(work.a) % 16 == 0 && reinterpret_cast<uintptr_t>(work.b) % 16 == 0 &&
         (layout.segments == 1 || layout.elements * size % 16 == 0);
}

template <Kind K, Kept kKept>
cudaError_t LaunchKept(Work work, const gpu::Launcher& launcher) {
  constexpr int64_t kSize = sizeof(typename Pair<K>::T);
  if (InWords(work, kSize))
    return LaunchBlocks(launcher, WordsKernel<K, kKept>, CeilDiv(work.range.items(), kThreads / 32), work);
  work.cut = CutOf(work.layout, work.range, static_cast<int>(kSize));
  if (work.rows.walk == Walk::kFar) work.cut.leaves = 1;
  SetStep(uint32_t{1} << work.cut.stride_log2(), &work.rows);
  const int64_t segments = work.range.segment_end - work.range.segment_begin;
  const int64_t blocks = CeilDiv(segments, int64_t{1} << work.cut.columns_log2()) *
                         (work.range.tile_end - work.range.tile_begin);
  const bool many = work.cut.leaves == 8;
  auto* const kernel =
      work.rows.walk == Walk::kFar ? TileKernel<K, kKept, 1, Walk::kFar>
      : work.rows.walk == Walk::kDigits
          ? (many ? TileKernel<K, kKept, 8, Walk::kDigits> : TileKernel<K, kKept, 1, Walk::kDigits>)
          : (many ? TileKernel<K, kKept, 8, Walk::kEven> : TileKernel<K, kKept, 1, Walk::kEven>);
  return LaunchBlocks(launcher, kernel, blocks, work);
}

template <Kind K>
cudaError_t LaunchKind(const Work& work, Kept kept, const gpu::Launcher& launcher) {
  if (kept == Kept::kAll) return LaunchKept<K, Kept::kAll>(work, launcher);
  return LaunchKept<K, Kept::kSums>(work, launcher);
}

}  // namespace tilewire::compare::cuda
