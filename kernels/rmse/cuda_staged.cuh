// Short segments that lie in one piece with their neighbours: they are copied into shared memory in whole
// words, as they lie, and summed from there. No lane is idle that copies, however long segments are and
// wherever they begin.
#pragma once

#include "kernels/rmse/cuda_copies.cuh"
#include "kernels/rmse/cuda_staged_sums.cuh"
#include "kernels/rmse/shapes.h"

namespace tilewire::rmse::cuda {

/// Items that a team copies at once.
struct Stage {
  int64_t first = 0;           ///< item
  int items = 0;               ///< 0: there is none
  int skip_a = 0, skip_b = 0;  ///< elements of each operand's first word that are others'
};

/// Starts to copy items `first` and on, as far as they are below `end`, to x and y.
template <typename E, StagedBy kBy, int kWidth>
__device__ Stage StartStage(const Work& work, const Staged& c, const Team& team, int64_t first, int64_t end,
                            uint4* x, uint4* y) {
  using T = typename E::Type;
  constexpr int kSize = sizeof(T);
  Stage stage{.first = first};
  // A block has items. To ask cost it 1 to 3% (middle axes of f16 and u8, one H200, 2026-11-22).
  if constexpr (kBy == StagedBy::kWarps) {
    if (first >= end) return stage;
  }
  stage.items = static_cast<int>(min(end - first, static_cast<int64_t>(c.items)));
  const int item = c.rows * (kWidth > 0 ? kWidth : c.width), elements = stage.items * item;
  const char *a = work.a + first * item * kSize, *b = work.b + first * item * kSize;
  stage.skip_a = kBy == StagedBy::kWords ? 0 : Misalignment<E>(a);
  // Alike but for threads that take any layout.
  constexpr bool kAlike = kBy != StagedBy::kThreads || kWidth > 0;
  stage.skip_b = kAlike ? stage.skip_a : Misalignment<E>(b);
  const auto run = [&](const char* operand, const char* from, int skip) {
    return WordRun{from - skip * kSize, ((skip + elements) * kSize + 15) / 16,
                   operand + work.range.byte_begin, operand + work.range.byte_end};
  };
  const WordRun run_a = run(work.a, a, stage.skip_a), run_b = run(work.b, b, stage.skip_b);
  if constexpr (kBy == StagedBy::kWords) {
    CopyWords<T>(x, y, run_a, run_b, team, Pitched(team, c.segment_words, c.pitch));
  } else if constexpr (kBy == StagedBy::kWarps) {
    CopyWords<T>(x, y, run_a, run_b, team, Packed());
  } else {
    CopyWords<T>(x, run_a, team, Packed());
    CopyWords<T>(y, run_b, team, Packed());
  }
  return stage;
}

/// A block's only stage: a thread for each segment, or several for its phases.
template <typename E, int kStep>
__device__ void SumStageByThreads(const Work& work, const Staged& c, const Stage& stage, const uint4* x,
                                  const uint4* y, double* shared) {
  using T = typename E::Type;
  constexpr int kSize = sizeof(T);
  const int width = kStep > 0 ? 1 : c.width, item_elements = c.rows * width;
  const int phase = c.phases == 1 ? 0 : static_cast<int>(threadIdx.x) / c.lanes;
  const int lane = static_cast<int>(threadIdx.x) - phase * c.lanes, segments = stage.items * width;
  double sum[1] = {0};
  for (int s = lane; s < segments && phase < c.phases; s += c.lanes) {
    const int item =
        kStep > 0 ? s : static_cast<int>(static_cast<unsigned>(s) / static_cast<unsigned>(width));
    const int place = item * item_elements + s - item * width;
    const T* p = reinterpret_cast<const T*>(x) + stage.skip_a + place;
    const T* q = reinterpret_cast<const T*>(y) + stage.skip_b + place;
    if constexpr (!E::kExact) {
      sum[0] = SumStaged<E, kStep>(p, q, c, phase, work.flip);
    } else if constexpr (kStep > 0) {
      sum[0] = __ull2double_rn(SumStagedWords<E>(reinterpret_cast<const uint32_t*>(x),
                                                 reinterpret_cast<const uint32_t*>(y),
                                                 (stage.skip_a + place) * kSize, c.rows * kSize, work.flip));
    } else {
      sum[0] = __ull2double_rn(SumStagedExact<E>(p, q, c, phase, work.flip));
    }
    if (c.phases == 1) Store(work, stage.first * width + s, 0, sum[0]);
  }
  if (c.phases == 1) return;
  AddPhases(c.phases, c.lanes, c.lanes, phase, lane, sum, shared);
  if (phase == 0 && lane < segments) Store(work, stage.first * width + lane, 0, sum[0]);
}

/// A block's only stage: a thread for each segment of kPeriod / 2 < words ≤ kPeriod ≤ 32, so that each
/// accumulator has one element.
template <typename E, int kPeriod>
__device__ void SumStageByWords(const Work& work, const Staged& c, const Stage& stage, const uint4* x,
                                const uint4* y) {
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread >= stage.items) return;
  double sum[kWord<E>];
  SumWholeWords<E, kPeriod>(x + thread * c.pitch, y + thread * c.pitch, c.segment_words, sum);
  Fold<kWord<E>>(sum);
  Store(work, stage.first + thread, 0, sum[0]);
}

/// A warp's stages, one on its way while another is summed. The blocks of a sweep share its stages like the
/// lanes of a warp share words: a warp's next stage lies a sweep's warps further on.
template <typename E>
__device__ void SumStagesByWarp(const Work& work, const Staged& c, uint4* memory) {
  constexpr int kSteps = 32 / kStagedJoint;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const Team team{lane, 32};
  const int n = c.rows;
  int64_t first;
  const int64_t sweep = DivMod(work.block_base + blockIdx.x, c.sweep, &first);
  first = c.item_begin + ((sweep * c.stages * c.sweep + first) * kStagedWarps + warp) * c.items;
  const int64_t stride = static_cast<int64_t>(c.sweep) * kStagedWarps * c.items;
  uint4* const buffers = memory + warp * 4 * c.words;  // [2][operand][words]
  const auto start = [&](uint4* x, int number) {
    return StartStage<E, StagedBy::kWarps, 1>(work, c, team, first + number * stride,
                                              number < c.stages ? c.item_end : 0, x, x + c.words);
  };
  uint4* x = buffers;
  Stage next = start(x, 0);
  double mine = 0;
  int step = 0;
#pragma unroll 1
  for (int number = 1; next.items > 0; ++number) {
    WaitForAllCopies();
    __syncwarp();
    const Stage here = next;
    uint4* const other = buffers + (x == buffers ? 2 * c.words : 0);
    next = start(other, number);
#pragma unroll 1
    for (int s = 0; s < here.items; s += kStagedJoint, ++step) {
      const double sum = SumJoint<E>(x, x + c.words, here.skip_a + s * n, n, here.items - s, lane, work.flip);
      if (lane % kSteps == step) mine = sum;
    }
    x = other;
  }
  const int index = lane % kSteps * kStagedJoint + lane / kSteps, number = index / c.items;
  const int64_t segment = first + number * stride + index % c.items;
  if (number < c.stages && segment < c.item_end) Store(work, segment, 0, mine);
}

/// kThreads: kStep is rows · phases from one row of a thread's group to the next where a segment has one
/// column (integers of 8 and 16 bits: 1), 0: any layout. kWords: the segments' words, rounded up to a power
/// of two. kWarps: segments of up to a tile, whose operands are misaligned alike.
template <typename E, StagedBy kBy, int kStep>
__global__ void __launch_bounds__(kBy == StagedBy::kWarps ? kStagedWarps * 32 : kBlockThreads)
    StagedKernel(const __grid_constant__ Work work, const __grid_constant__ Staged c) {
  extern __shared__ uint4 staged[];
  if constexpr (kBy == StagedBy::kWarps) {
    SumStagesByWarp<E>(work, c, staged);
  } else {
    LetFinishStart();
    const Team team{static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
    constexpr int kWidth = kBy == StagedBy::kThreads && kStep == 0 ? 0 : 1;
    const Stage stage =
        StartStage<E, kBy, kWidth>(work, c, team, c.item_begin + (work.block_base + blockIdx.x) * c.items,
                                   c.item_end, staged, staged + c.words);
    WaitForAllCopies();
    __syncthreads();
    if constexpr (kBy == StagedBy::kWords) {
      SumStageByWords<E, kStep>(work, c, stage, staged, staged + c.words);
    } else {
      SumStageByThreads<E, kStep>(work, c, stage, staged, staged + c.words,
                                  reinterpret_cast<double*>(staged + 2 * c.words));
    }
  }
}

}  // namespace tilewire::rmse::cuda
