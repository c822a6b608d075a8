// What the RMSE kernels share: where elements lie, and how sums are stored.
#pragma once

#include "kernels/rmse/cuda_element.cuh"
#include "kernels/rmse/cuda_tree.cuh"
#include "kernels/rmse/work.h"

namespace tilewire::rmse::cuda {

/// In a kernel whose sums another finishes: once all blocks are here or done, that one's blocks may
/// be set up.
__device__ inline void LetFinishStart() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// Until all launches before this one are done and what they wrote can be seen.
__device__ inline void WaitForSums() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// From a segment's sum to its result.
__device__ inline double Finished(const Ending& ending, double sum) {
  double value = sum;
  // Multiplying by a power of two rounds as dividing by its inverse does, at a tenth of the cost.
  if (ending.output != Output::kSumSquares)
    value = ending.reciprocal != 0 ? __dmul_rn(value, ending.reciprocal) : __ddiv_rn(value, ending.elements);
  if (ending.output == Output::kRmse) value = __dsqrt_rn(value);
  return value == value ? value : __longlong_as_double(0x7ff8000000000000ll);
}

/// Stores sum `index` of a segment.
__device__ inline void Store(const Work& work, int64_t segment, int64_t index, double sum) {
  if (work.result != nullptr) {
    work.result[segment] = Finished(work.ending, sum);
  } else {
    work.tile_sums[segment * work.sums_per_segment + index] = sum;
  }
}

/// Elements by which an address lies beyond the 16-byte word that it is in.
template <typename E>
__device__ int Misalignment(const char* p) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(p) % 16 / sizeof(typename E::Type));
}

__device__ inline int TileLength(const Work& work, int64_t tile) {
  const int64_t rest = work.layout.elements - tile * kTileElements;
  return static_cast<int>(rest < kTileElements ? rest : kTileElements);
}

}  // namespace tilewire::rmse::cuda
