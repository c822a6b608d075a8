// What the kernels need to know of one call, where elements lie, and where values go.
#pragma once

#include <bit>

#include "kernels/array/launch_cuda.h"
#include "kernels/compare/compare.h"
#include "kernels/rmse/cuda_element.cuh"

namespace tilewire::compare::cuda {

using rmse::cuda::Kind;

inline constexpr int kThreads = 256;  // of every block: one for each of a tile's accumulators
inline constexpr int64_t kMaxGrid = int64_t{1} << 30;

__host__ __device__ constexpr int64_t CeilDiv(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

/// How what is kept of a segment becomes its values.
struct Ending {
  double elements;    ///< of a segment
  double reciprocal;  ///< of `elements` where that is a power of two, else 0
  bool integers;      ///< keys are integers, not bits of doubles
};

/// How a block's threads share tiles: 2^columns_log2 neighbouring segments, and residues of accumulators.
/// Thread (column, residue) has accumulators residue + residues · m below the period, of `leaves` at a time.
struct Cut {
  int residues_log2;
  int period_log2;  ///< accumulators that have elements, all but the first power of two of them
  int leaves;       ///< 1 or 8
  bool neighbours;  ///< neighbouring threads have neighbouring segments; else neighbouring residues
  __host__ __device__ int columns_log2() const { return 8 - residues_log2; }
  /// From one element of a thread's leaves to the next.
  __host__ __device__ int stride_log2() const { return period_log2 - (leaves == 8 ? 3 : 0); }
};

/// How a thread goes from one of its elements to the next: along one axis, along two or three, along any.
enum class Walk : uint8_t { kEven, kDigits, kFar };

/// Where a segment's elements lie, by row-major index over the reduced axes. Digits of an index: [0] in the
/// innermost reduced axis, [1] in the next; the one further out needs none.
struct Rows {
  Walk walk;
  int64_t strides[3];  ///< of the three innermost reduced axes, in elements
  uint32_t extents[2];
  uint32_t digits[2];  ///< of a thread's step
  int64_t step;        ///< in elements, where no axis ends
  int64_t carries[2];  ///< added where axis 0 or 1 does
};

/// One launch, by value.
struct Work {
  rmse::Layout layout;
  rmse::Range range;
  const char* a;
  const char* b;
  Planes planes;  ///< place segment · tiles + tile of each, or, where `finished`, ...
  Values values;  ///< ... the values of the segment
  bool finished;
  Ending ending;
  int64_t element;     ///< added to indices
  uint64_t flip;       ///< the sign bits of signed integers, over all eight bytes
  int64_t block_base;  ///< added to blockIdx.x: a grid has at most 2^31 - 1 blocks
  Rows rows;
  Cut cut;
};

/// Launches the tiles of `work.range`. Defined in cuda_launch.cuh, compiled by kind in cuda_*.cu.
template <Kind K>
cudaError_t LaunchKind(const Work& work, Kept kept, const gpu::Launcher& launcher);

/// Of an element over any axes. Out of line: its code is long, and few need it.
static __device__ __noinline__ int64_t FarOffset(const rmse::Layout& layout, int64_t index) {
  return rmse::AxesOffset(layout, true, 0, index);
}

/// The largest |d| of some pairs.
struct Extreme {
  uint64_t key, index;
  /// A larger key wins, then the smaller index; kNoIndex is larger than any.
  __device__ static Extreme Of(const Extreme& x, const Extreme& y) {
    return y.key > x.key || (y.key == x.key && y.index < x.index) ? y : x;
  }
};

__device__ inline void Put(const Values& values, Metric metric, int64_t segment, uint64_t bits) {
  std::byte* const to = values.of[static_cast<int>(metric)];
  if (to != nullptr) reinterpret_cast<uint64_t*>(to)[segment] = bits;
}
__device__ inline void Put(const Values& values, Metric metric, int64_t segment, double value) {
  const auto bits = static_cast<uint64_t>(__double_as_longlong(value));
  Put(values, metric, segment, value == value ? bits : uint64_t{0x7ff8000000000000});
}

/// Sum 0: of squares, 1: of magnitudes, 2: of differences.
__device__ inline void FinishSum(const Values& values, const Ending& ending, int sum, int64_t segment,
                                 double value) {
  // Multiplying by a power of two rounds as dividing by its inverse does, at a tenth of the cost.
  const double mean =
      ending.reciprocal != 0 ? __dmul_rn(value, ending.reciprocal) : __ddiv_rn(value, ending.elements);
  if (sum == 0) {
    if (values.of[static_cast<int>(Metric::kRmse)] != nullptr)
      Put(values, Metric::kRmse, segment, __dsqrt_rn(mean));
    Put(values, Metric::kMse, segment, mean);
    Put(values, Metric::kSumSquares, segment, value);
  } else if (sum == 1) {
    Put(values, Metric::kMeanAbs, segment, mean);
    Put(values, Metric::kSumAbs, segment, value);
  } else {
    Put(values, Metric::kMean, segment, mean);
    Put(values, Metric::kSum, segment, value);
  }
}

__device__ inline void FinishExtreme(const Values& values, const Ending& ending, int64_t segment,
                                     const Extreme& extreme) {
  double value = ending.integers ? __ull2double_rn(extreme.key)
                                 : __longlong_as_double(static_cast<long long>(extreme.key));
  if (extreme.index == kNoIndex) value = __longlong_as_double(0x7ff8000000000000ll);
  Put(values, Metric::kMaxAbs, segment, value);
  Put(values, Metric::kMaxAbsIndex, segment, extreme.index);
}

__device__ inline void FinishCounts(const Values& values, int64_t segment, uint64_t nans, uint64_t unequal) {
  Put(values, Metric::kNanPairs, segment, nans);
  Put(values, Metric::kUnequalPairs, segment, unequal);
}

}  // namespace tilewire::compare::cuda
