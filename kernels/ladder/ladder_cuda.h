// The teaching ladder: every step from the naive kernel to ours, one small file a step, one idea a file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/array/launch_cuda.h"

namespace tilewire::ladder {

/// How far a step's answer may be from the exact one: early RMSE steps sum in f32 with atomics, which is part
/// of the lesson.
enum class Exactness : uint8_t {
  kTolerance,  ///< within Step::tolerance of the float64 value; other bits each time where atomics are used
  kReproducible,  ///< within the tolerance, but the same bits each time
  kContract,      ///< the bits of the numeric contract
};

/// What every step of a group has in common.
struct StepInfo {
  std::string_view name;  ///< "2_shared_tree_strided": unique in its group, ordered
  std::string_view idea;  ///< one sentence: what is new in this step and why it is faster (or slower)
  Exactness exactness = Exactness::kContract;
  double tolerance = 0;  ///< relative, for operands of one magnitude
  /// The tolerance holds for sums of up to so many elements. A running f32 sum that has grown past 2^24 terms
  /// swallows the next term whole, so the early steps are wrong, not imprecise, on large arrays.
  int64_t tolerance_elements = INT64_MAX;
};

// Of every step: extents are at least 1, operands are aligned to 16 bytes as cudaMalloc's are, run enqueues
// (or lists, then no pointer is touched) and returns the first error. Thread-safe; calls at one time need
// scratch and results of their own.

/// RMSE of two f32 vectors of n elements, all on the device; the value arrives in *result (device).
struct RmseStep {
  StepInfo info;
  /// Bytes of device scratch, aligned as cudaMalloc's, that run needs for n pairs.
  int64_t (*scratch_bytes)(int64_t n);
  cudaError_t (*run)(const float* a, const float* b, int64_t n, double* result, void* scratch,
                     const gpu::Launcher& launcher);
};

/// Batched RMSE: a and b are f32 (rows, columns, batch) row-major, reduced over rows and columns; `batch`
/// results.
struct BatchedStep {
  StepInfo info;
  int64_t (*scratch_bytes)(int64_t rows, int64_t columns, int64_t batch);
  cudaError_t (*run)(const float* a, const float* b, int64_t rows, int64_t columns, int64_t batch,
                     double* result, void* scratch, const gpu::Launcher& launcher);
};

/// Copy or transpose of an f32 (rows, columns) matrix.
struct MatrixStep {
  StepInfo info;
  bool transposes = true;  ///< false: a copy, for comparison
  cudaError_t (*run)(const float* in, float* out, int64_t rows, int64_t columns,
                     const gpu::Launcher& launcher);
};

/// Steps in ladder order; the last one of each group is ours. Static storage, thread-safe.
std::span<const RmseStep> RmseSteps();
std::span<const BatchedStep> BatchedSteps();
std::span<const MatrixStep> CopySteps();
std::span<const MatrixStep> TransposeSteps();

}  // namespace tilewire::ladder
