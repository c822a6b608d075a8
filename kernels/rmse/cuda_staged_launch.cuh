// Which short segments StagedKernel takes, and in which shape. The choices are those that measured fastest.
#pragma once

#include <algorithm>
#include <bit>

#include "kernels/rmse/cuda_blocks.cuh"
#include "kernels/rmse/cuda_staged.cuh"

namespace tilewire::rmse::cuda {

inline constexpr int64_t kStagedBytes = 32 << 10;       // of both operands that a block takes, about
inline constexpr int64_t kMostStagedBytes = 100 << 10;  // of an item that is larger

/// Cuts the range for a block of at most kBlockThreads threads; returns their number. `pair`: bytes of an
/// item of both operands.
inline int CutStaged(const Work& work, int64_t pair, int64_t rows, int64_t width, bool splits, Staged* c) {
  c->item_begin = work.range.segment_begin / width;
  c->item_end = CeilDiv(work.range.segment_end, width);
  c->rows = static_cast<int>(rows);
  c->width = static_cast<int>(width);
  const int64_t items = c->item_end - c->item_begin, processors = Multiprocessors();
  int64_t per = std::clamp<int64_t>(kStagedBytes / pair, 1, std::max<int64_t>(1, 8 * kBlockThreads / width));
  while (per > 1 && per * width > 64 && CeilDiv(items, per) < processors * 4) per = CeilDiv(per, 2);
  if (width == 1 && per >= 128) per -= per % (per > kBlockThreads ? kBlockThreads : 32);
  const int64_t segments = per * width, period = std::bit_ceil(static_cast<uint64_t>(rows));
  // Rows of a segment are spread over threads where there are few segments.
  int64_t phases = 1;
  while (splits && phases * 2 * kStagedRows <= period && segments * phases * 2 <= kBlockThreads) phases *= 2;
  const int64_t threads = std::min<int64_t>(CeilDiv(segments * phases, 32) * 32, kBlockThreads);
  c->items = static_cast<int>(per);
  c->phases = static_cast<int>(phases);
  c->lanes = static_cast<int>(phases == 1 ? threads : segments);
  c->groups = static_cast<int>(std::max<int64_t>(period / phases / kStagedRows, 1));
  c->words = static_cast<int>(CeilDiv(per * pair / 2 + 15, 16));
  return static_cast<int>(threads);
}

/// Items of `rows` x `width` elements. cudaErrorNotSupported, and nothing launched, where they are too long.
template <typename E>
cudaError_t LaunchStaged(const Work& work, int64_t rows, int64_t width, const gpu::Launcher& launcher) {
  const int64_t pair = 2 * rows * width * static_cast<int64_t>(sizeof(typename E::Type));
  if (rows > kAccumulators || pair > (width == 1 ? kColumnShared / 32 : kMostStagedBytes))
    return cudaErrorNotSupported;
  Staged c{};
  const int threads = CutStaged(work, pair, rows, width, width > 1 || !E::kExact, &c);
  const auto shared = 2 * c.words * 16 + (c.phases > 1 ? threads * 8 : 0);
  if (shared > kColumnShared && shared > MostShared()) return cudaErrorNotSupported;
  const auto launch = [&](auto kernel) {
    return LaunchShared(launcher, kernel, CeilDiv(c.item_end - c.item_begin, c.items), threads, shared, work,
                        c);
  };
  if (width > 1) return launch(StagedKernel<E, 0>);
  if constexpr (!E::kExact) {
    switch (c.phases * c.groups) {
      case 2:
        return launch(StagedKernel<E, 2>);
      case 4:
        return launch(StagedKernel<E, 4>);
      case 8:
        return launch(StagedKernel<E, 8>);
      case 16:
        return launch(StagedKernel<E, 16>);
      case 32:
        return launch(StagedKernel<E, 32>);
    }
  }
  return launch(StagedKernel<E, 1>);
}

/// Contiguous segments of up to 64 `words`: whether StagedKernel is the better one. It is where GroupKernel's
/// lanes would be too empty, and for 16-bit elements where segments are no whole words long.
template <typename E>
bool SuitsStaged(const Work& work, int64_t words) {
  constexpr int64_t kSize = sizeof(typename E::Type);
  const int64_t n = work.layout.elements, bytes = n * kSize;
  if (kSize == 8 || (kSize == 4 && n == 1)) return false;
  const auto held = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(words))) * 16;
  if (bytes < 16 || (kSize == 2 && bytes % 16 != 0)) return true;
  // Threads of 16-bit floats that begin 32 bytes apart share banks.
  if (kSize == 2 && !E::kExact && bytes % 32 == 0) return false;
  return bytes * 16 <= held * (kSize == 2 && words <= 16 ? 11 : 10);
}

}  // namespace tilewire::rmse::cuda
