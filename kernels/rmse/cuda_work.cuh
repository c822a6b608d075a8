// What the RMSE kernels need to know of one call, and where elements lie.
#pragma once

#include "kernels/array/launch_cuda.h"
#include "kernels/rmse/cuda_element.cuh"
#include "kernels/rmse/rmse.h"

namespace tilewire::rmse::cuda {

inline constexpr int kBlockThreads = 256;  // of most kernels
inline constexpr int kWarps = kBlockThreads / 32;
inline constexpr int kFinishThreads = 1024;  // of a block that combines a chunk, at most
inline constexpr int kFinishEach = 8;        // neighbouring sums that a thread reads
/// Sums that one block combines: a power of two, so chunks are whole subtrees.
inline constexpr int kFinishChunk = kFinishThreads * kFinishEach;

/// How a sum becomes a result.
struct Ending {
  double elements;    ///< of a segment
  double reciprocal;  ///< of `elements` where that is a power of two, else 0
  Output output;
};

/// Which adjacent tiles of a segment become one sum before it is stored.
enum class Combine { kNone, kWarp, kBlock };

/// From a row-major index over the reduced axes to memory. With two axes the index is divided by the inner
/// one's extent; within a tile, whose 4096 indices follow each other, 32 bits suffice for that.
struct RowMap {
  int axes;
  int64_t inner;                       ///< extent of the innermost
  int64_t inner_stride, outer_stride;  ///< in elements
  uint32_t reciprocal;                 ///< 2^32 / inner rounded up, where inner < kSmallInner
};
inline constexpr int64_t kSmallInner = 1 << 15;

/// One launch, by value.
struct Work {
  Layout layout;
  Range range;
  const char* a;
  const char* b;
  double* tile_sums;  ///< sums go here, [segment][sums_per_segment] ...
  double* result;     ///< ... or, where not null, each segment has one sum and it is finished into this
  int64_t sums_per_segment;
  Ending ending;
  uint64_t flip;       ///< the sign bits of signed integers, over all eight bytes
  int64_t block_base;  ///< added to blockIdx.x: a grid has at most 2^31 - 1 blocks
  RowMap rows;         ///< where a segment's elements lie
  int batch;           ///< tiles or segments that a warp sums one after the other, a power of two
  Combine combine;
};

/// Launches the sums of `work.range`. Where `work.result` is not null and a segment's sum is one, it is
/// finished into that. Where `whole`, adjacent tiles of a segment may become one sum; `sums` receives how
/// many a segment then has. Defined in cuda_launch.cuh, compiled by kind in cuda_*.cu.
template <Kind K>
cudaError_t LaunchKind(Work work, bool whole, int64_t* sums, const gpu::Launcher& launcher);

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

/// v[0] + v[n / 2], v[1] + v[n / 2 + 1], ..., and so on until one is left, in v[0].
template <int n, int kSize>
__device__ void Fold(double (&v)[kSize]) {
  if constexpr (n > 1) {
#pragma unroll
    for (int i = 0; i < n / 2; ++i) v[i] = __dadd_rn(v[i], v[i + n / 2]);
    Fold<n / 2>(v);
  }
}

/// v[0] + v[1], v[2] + v[3], ..., and so on until one is left, in v[0].
template <int n, int kSize>
__device__ void FoldPairs(double (&v)[kSize]) {
  if constexpr (n > 1) {
#pragma unroll
    for (int i = 0; i < n / 2; ++i) v[i] = __dadd_rn(v[2 * i], v[2 * i + 1]);
    FoldPairs<n / 2>(v);
  }
}

/// Memory offset of row-major index `index` over the axes of one kind, the innermost `skip` axes left out.
__device__ inline int64_t AxesOffset(const Layout& layout, bool reduced, int skip, int64_t index) {
  int64_t offset = 0;
  for (int axis = layout.rank - 1 - skip; axis >= 0 && index != 0; --axis) {
    if (layout.reduced[axis] != reduced) continue;
    int64_t at;
    index = DivMod(index, layout.dims[axis], &at);
    offset += at * layout.strides[axis];
  }
  return offset;
}

/// Rows that follow row `first` of a segment.
struct RowCursor {
  int64_t first, base,
      rest;  ///< with several axes: rest is the inner index of `first`, base the rest's elements
  __device__ RowCursor(const RowMap& map, int64_t row) : first(row), base(0), rest(row) {
    if (map.axes > 1) base = DivMod(row, map.inner, &rest) * map.outer_stride;
  }
  /// Inner axes that are full between `first` and row first + j, j ≤ 4096.
  __device__ int64_t Full(const RowMap& map, int j) const {
    const int64_t row = rest + j;
    return map.inner < kSmallInner
               ? static_cast<int64_t>(__umulhi(static_cast<uint32_t>(row), map.reciprocal))
               : static_cast<int64_t>(row >= map.inner);
  }
  /// Elements from the segment's start to row first + j.
  __device__ int64_t Offset(const RowMap& map, const Layout& layout, int j) const {
    if (map.axes == 1) return (rest + j) * map.inner_stride;
    if (map.axes > 2) return AxesOffset(layout, true, 0, first + j);
    const int64_t outer = Full(map, j);
    return base + outer * map.outer_stride + (rest + j - outer * map.inner) * map.inner_stride;
  }
  /// Rows from first + j to the end of the inner axis; many where there is one axis.
  __device__ int64_t Left(const RowMap& map, int j) const {
    return map.axes == 1 ? kTileElements : (Full(map, j) + 1) * map.inner - rest - j;
  }
};

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
