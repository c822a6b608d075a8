// Comparing on the GPU: ranges, finishing, and both at once.
#include <algorithm>

#include "kernels/compare/compare_cuda.h"
#include "kernels/compare/cuda_finish.cuh"

namespace tilewire::compare {
namespace cuda {
namespace {

/// All but the steps, which depend on the cut.
Rows RowsOf(const rmse::Layout& layout) {
  constexpr int64_t kMostExtent =
      1 << 30;  // digits are 32 bits, and a step is added before they are compared
  Rows rows{
      .walk = Walk::kEven, .strides = {1, 0, 0}, .extents = {1, 1}, .digits = {}, .step = 0, .carries = {}};
  int64_t extents[3] = {1, 1, 1};
  int axes = 0;
  for (int axis = layout.rank - 1; axis >= 0; --axis) {
    if (!layout.reduced[axis]) continue;
    if (axes < 3) {
      rows.strides[axes] = layout.strides[axis];
      extents[axes] = layout.dims[axis];
    }
    ++axes;
  }
  if (axes <= 1) return rows;
  if (axes == 2) {  // one digit is enough: a piece of the outer axis is followed by the next
    extents[1] = std::min(extents[1], kMostExtent);
    rows.strides[2] = extents[1] * rows.strides[1];
  }
  const bool far = axes > 3 || extents[0] > kMostExtent || extents[1] > kMostExtent;
  rows.walk = far ? Walk::kFar : Walk::kDigits;
  for (int i = 0; i < 2; ++i) {
    rows.extents[i] = static_cast<uint32_t>(far ? 1 : extents[i]);
    rows.carries[i] = rows.strides[i + 1] - extents[i] * rows.strides[i];
  }
  return rows;
}

Ending EndingOf(const rmse::Plan& plan) {
  const int64_t n = plan.layout().elements;
  const auto elements = static_cast<double>(n);
  const bool power = std::has_single_bit(static_cast<uint64_t>(n));
  const DType dtype = plan.operand().dtype;
  return {.elements = elements,
          .reciprocal = power ? 1 / elements : 0,
          .integers = dtype == DType::kI64 || dtype == DType::kU64};
}

cudaError_t LaunchTiles(Work work, DType dtype, Kept kept, const gpu::Launcher& launcher) {
  if (work.range.items() == 0) return cudaSuccess;
  const auto flipped = [&work](uint64_t sign) {
    work.flip = sign;
    return work;
  };
  switch (dtype) {
    case DType::kI8:
      return LaunchKind<Kind::kU8>(flipped(0x8080808080808080), kept, launcher);
    case DType::kU8:
      return LaunchKind<Kind::kU8>(work, kept, launcher);
    case DType::kI16:
      return LaunchKind<Kind::kU16>(flipped(0x8000800080008000), kept, launcher);
    case DType::kU16:
      return LaunchKind<Kind::kU16>(work, kept, launcher);
    case DType::kI32:
      return LaunchKind<Kind::kU32>(flipped(0x8000000080000000), kept, launcher);
    case DType::kU32:
      return LaunchKind<Kind::kU32>(work, kept, launcher);
    case DType::kI64:
      return LaunchKind<Kind::kU64>(flipped(0x8000000000000000), kept, launcher);
    case DType::kU64:
      return LaunchKind<Kind::kU64>(work, kept, launcher);
    case DType::kF16:
      return LaunchKind<Kind::kF16>(work, kept, launcher);
    case DType::kBF16:
      return LaunchKind<Kind::kBF16>(work, kept, launcher);
    case DType::kF32:
      return LaunchKind<Kind::kF32>(work, kept, launcher);
    case DType::kF64:
      return LaunchKind<Kind::kF64>(work, kept, launcher);
    case DType::kBool:
    case DType::kC64:
    case DType::kC128:
      break;  // Plan::Make refuses them
  }
  return cudaErrorInvalidValue;
}

Work WorkOf(const rmse::Plan& plan, const rmse::Range& range, const void* a, const void* b) {
  return {.layout = plan.layout(),
          .range = range,
          .a = static_cast<const char*>(a),
          .b = static_cast<const char*>(b),
          .planes = {},
          .values = {},
          .finished = false,
          .ending = EndingOf(plan),
          .element = 0,
          .flip = 0,
          .block_base = 0,
          .rows = RowsOf(plan.layout()),
          .cut = {}};
}

cudaError_t LaunchFinish(const gpu::Launcher& launcher, void (*kernel)(FinishWork), int64_t blocks, Kept kept,
                         FinishWork work) {
  const dim3 grid(1, kept == Kept::kAll ? 5 : kept == Kept::kSums ? 3 : 1);
  for (int64_t base = 0; base < blocks; base += kMaxGrid) {
    work.block_base = base;
    const auto width = static_cast<unsigned>(blocks - base < kMaxGrid ? blocks - base : kMaxGrid);
    if (const cudaError_t error = launcher.Run(kernel, dim3(width, grid.y), dim3(kThreads), 0, work);
        error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace cuda

cudaError_t CudaRange(const rmse::Plan& plan, const rmse::Range& range, Kept kept, const void* a,
                      const void* b, int64_t element, const Planes& planes, const gpu::Launcher& launcher) {
  cuda::Work work = cuda::WorkOf(plan, range, a, b);
  work.planes = planes;
  work.element = element;
  return cuda::LaunchTiles(work, plan.operand().dtype, kept, launcher);
}

cudaError_t CudaSegments(const rmse::Plan& plan, const rmse::Range& range, Kept kept, const void* a,
                         const void* b, const Values& values, const gpu::Launcher& launcher) {
  cuda::Work work = cuda::WorkOf(plan, range, a, b);
  work.values = values;
  work.finished = true;
  return cuda::LaunchTiles(work, plan.operand().dtype, kept, launcher);
}

cudaError_t CudaFinish(const rmse::Plan& plan, Kept kept, const Planes& planes, const Values& values,
                       const gpu::Launcher& launcher) {
  const rmse::Layout& layout = plan.layout();
  cuda::FinishWork work{.planes = planes,
                        .values = values,
                        .ending = cuda::EndingOf(plan),
                        .segments = layout.segments,
                        .pitch = layout.tiles,
                        .count = layout.tiles,
                        .stride = 1,
                        .block_base = 0};
  if (work.count <= cuda::kFew)
    return cuda::LaunchFinish(launcher, cuda::FinishFewKernel, cuda::CeilDiv(work.segments, cuda::kThreads),
                              kept, work);
  for (;;) {
    const int64_t chunks = cuda::CeilDiv(work.count, cuda::kChunk);
    const cudaError_t error =
        cuda::LaunchFinish(launcher, cuda::FinishChunkKernel, work.segments * chunks, kept, work);
    if (error != cudaSuccess || chunks == 1) return error;
    work.count = chunks;
    work.stride *= cuda::kChunk;
  }
}

}  // namespace tilewire::compare
