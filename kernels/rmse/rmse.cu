// RMSE on the GPU: ranges, finishing, and both at once.
#include <algorithm>
#include <bit>

#include "kernels/rmse/cuda_finish.cuh"
#include "kernels/rmse/cuda_work.cuh"
#include "kernels/rmse/rmse_cuda.h"

namespace tilewire::rmse {
namespace cuda {
namespace {

constexpr int64_t kMaxGrid = int64_t{1} << 30;

constexpr int64_t CeilDiv(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

RowMap RowsOf(const Layout& layout) {
  RowMap map{.axes = 0, .inner = 0, .inner_stride = 1, .outer_stride = 0, .reciprocal = 0};
  for (int axis = layout.rank - 1; axis >= 0; --axis) {
    if (!layout.reduced[axis]) continue;
    if (map.axes == 0) {
      map.inner = layout.dims[axis];
      map.inner_stride = layout.strides[axis];
    } else if (map.axes == 1) {
      map.outer_stride = layout.strides[axis];
    }
    ++map.axes;
  }
  map.axes = std::max(map.axes, 1);
  if (map.inner > 1 && map.inner < kSmallInner)
    map.reciprocal = static_cast<uint32_t>(((int64_t{1} << 32) + map.inner - 1) / map.inner);
  return map;
}

Ending EndingOf(const Plan& plan) {
  const int64_t n = plan.layout().elements;
  const auto elements = static_cast<double>(n);
  const bool power = std::has_single_bit(static_cast<uint64_t>(n));
  return {.elements = elements, .reciprocal = power ? 1 / elements : 0, .output = plan.output()};
}

/// `result`: null where sums are to be kept, which is where not `whole` (in a listing it may be null anyway).
cudaError_t LaunchSums(const Plan& plan, const Range& range, const void* a, const void* b, double* tile_sums,
                       double* result, bool whole, int64_t* sums, const gpu::Launcher& launcher) {
  const Work work{.layout = plan.layout(),
                  .range = range,
                  .a = static_cast<const char*>(a),
                  .b = static_cast<const char*>(b),
                  .tile_sums = tile_sums,
                  .result = result,
                  .sums_per_segment = plan.layout().tiles,
                  .ending = EndingOf(plan),
                  .flip = 0,
                  .block_base = 0,
                  .rows = RowsOf(plan.layout()),
                  .batch = 1,
                  .combine = Combine::kNone};
  Work flipped = work;
  switch (plan.operand().dtype) {
    case DType::kI8:
      flipped.flip = 0x8080808080808080;
      return LaunchKind<Kind::kU8>(flipped, whole, sums, launcher);
    case DType::kU8:
      return LaunchKind<Kind::kU8>(work, whole, sums, launcher);
    case DType::kI16:
      flipped.flip = 0x8000800080008000;
      return LaunchKind<Kind::kU16>(flipped, whole, sums, launcher);
    case DType::kU16:
      return LaunchKind<Kind::kU16>(work, whole, sums, launcher);
    case DType::kI32:
      flipped.flip = 0x8000000080000000;
      return LaunchKind<Kind::kU32>(flipped, whole, sums, launcher);
    case DType::kU32:
      return LaunchKind<Kind::kU32>(work, whole, sums, launcher);
    case DType::kI64:
      flipped.flip = 0x8000000000000000;
      return LaunchKind<Kind::kU64>(flipped, whole, sums, launcher);
    case DType::kU64:
      return LaunchKind<Kind::kU64>(work, whole, sums, launcher);
    case DType::kF16:
      return LaunchKind<Kind::kF16>(work, whole, sums, launcher);
    case DType::kBF16:
      return LaunchKind<Kind::kBF16>(work, whole, sums, launcher);
    case DType::kF32:
      return LaunchKind<Kind::kF32>(work, whole, sums, launcher);
    case DType::kF64:
      return LaunchKind<Kind::kF64>(work, whole, sums, launcher);
    case DType::kBool:
    case DType::kC64:
    case DType::kC128:
      break;  // Plan::Make refuses them
  }
  return cudaErrorInvalidValue;
}

/// Launches `blocks` blocks, in several grids where one would be too large.
cudaError_t LaunchFinish(const gpu::Launcher& launcher, void (*kernel)(FinishWork), int64_t blocks,
                         int threads, FinishWork work) {
  for (int64_t base = 0; base < blocks; base += kMaxGrid) {
    work.block_base = base;
    const auto grid = static_cast<unsigned>(std::min(kMaxGrid, blocks - base));
    if (const cudaError_t error =
            launcher.RunEarly(kernel, dim3(grid), dim3(static_cast<unsigned>(threads)), 0, work);
        error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}

/// Combines `count` sums of each segment, which lie [segment][count].
cudaError_t Finish(const Plan& plan, double* sums, int64_t count, double* result,
                   const gpu::Launcher& launcher) {
  FinishWork work{.sums = sums,
                  .result = result,
                  .segments = plan.layout().segments,
                  .pitch = count,
                  .count = count,
                  .stride = 1,
                  .block_base = 0,
                  .ending = EndingOf(plan)};
  if (count <= kFinishFew)
    return LaunchFinish(launcher, FinishFewKernel, CeilDiv(work.segments, kFinishFewThreads),
                        kFinishFewThreads, work);
  for (;;) {
    const int64_t chunks = CeilDiv(work.count, kFinishChunk);
    const int64_t most = std::min<int64_t>(work.count, kFinishChunk);
    const int threads = static_cast<int>(CeilDiv(CeilDiv(most, kFinishEach), 32)) * 32;
    const cudaError_t error =
        LaunchFinish(launcher, FinishChunkKernel, work.segments * chunks, threads, work);
    if (error != cudaSuccess || chunks == 1) return error;
    work.count = chunks;
    work.stride *= kFinishChunk;
  }
}

}  // namespace
}  // namespace cuda

cudaError_t CudaRange(const Plan& plan, const Range& range, const void* a, const void* b, double* tile_sums,
                      const gpu::Launcher& launcher) {
  if (range.items() == 0) return cudaSuccess;
  int64_t sums = 0;
  return cuda::LaunchSums(plan, range, a, b, tile_sums, nullptr, false, &sums, launcher);
}

cudaError_t CudaFinish(const Plan& plan, double* tile_sums, double* result, const gpu::Launcher& launcher) {
  return cuda::Finish(plan, tile_sums, plan.layout().tiles, result, launcher);
}

cudaError_t CudaWhole(const Plan& plan, const void* a, const void* b, double* tile_sums, double* result,
                      const gpu::Launcher& launcher) {
  int64_t sums = 0;
  const cudaError_t error =
      cuda::LaunchSums(plan, plan.whole(), a, b, tile_sums, result, true, &sums, launcher);
  if (error != cudaSuccess || sums == 1) return error;
  return cuda::Finish(plan, tile_sums, sums, result, launcher);
}

}  // namespace tilewire::rmse
