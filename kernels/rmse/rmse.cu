// RMSE on the GPU: which kernel sums which layout.
#include <algorithm>

#include "kernels/rmse/cuda_finish.cuh"
#include "kernels/rmse/cuda_tiles.cuh"
#include "kernels/rmse/rmse_cuda.h"

namespace tilewire::rmse {
namespace cuda {
namespace {

constexpr int64_t kTinyContiguous = 16;  // beyond, a thread's own cache lines no longer fit the L1 cache
constexpr int64_t kTinyStrided = 32;
constexpr int64_t kMaxGrid = int64_t{1} << 30;

constexpr int64_t CeilDiv(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

/// Launches `blocks` blocks, in several grids where one would be too large: launch(first block, grid).
template <typename Launch>
cudaError_t LaunchBlocks(int64_t blocks, Launch launch) {
  for (int64_t base = 0; base < blocks; base += kMaxGrid) {
    launch(base, static_cast<unsigned>(std::min(kMaxGrid, blocks - base)));
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

template <typename E, int kWidth>
cudaError_t LaunchTiny(Work work, cudaStream_t stream) {
  const int64_t segments = work.range.segment_end - work.range.segment_begin;
  return LaunchBlocks(CeilDiv(segments, kBlockThreads), [&](int64_t base, unsigned grid) {
    work.block_base = base;
    TinyKernel<E, kWidth><<<grid, kBlockThreads, 0, stream>>>(work);
  });
}

template <typename E>
cudaError_t LaunchTinyWidth(const Work& work, cudaStream_t stream) {
  const int64_t n = work.layout.elements;
  if (n == 1) return LaunchTiny<E, 1>(work, stream);
  if (n == 2) return LaunchTiny<E, 2>(work, stream);
  if (n <= 4) return LaunchTiny<E, 4>(work, stream);
  if (n <= 8) return LaunchTiny<E, 8>(work, stream);
  if (n <= 16) return LaunchTiny<E, 16>(work, stream);
  return LaunchTiny<E, 32>(work, stream);
}

template <typename E, bool kAligned>
cudaError_t LaunchWarps(Work work, cudaStream_t stream) {
  return LaunchBlocks(CeilDiv(work.range.items(), kBlockThreads / 32), [&](int64_t base, unsigned grid) {
    work.block_base = base;
    WarpKernel<E, kAligned><<<grid, kBlockThreads, 0, stream>>>(work);
  });
}

template <typename E>
cudaError_t LaunchColumns(Work work, cudaStream_t stream) {
  const int64_t width = work.layout.dims[work.layout.rank - 1];
  unsigned columns = 1;  // of a block; a narrow array's block reads several rows with each warp instead
  while (columns < width && columns < 32) columns *= 2;
  const int64_t groups = CeilDiv(width, columns);
  const int64_t outer_begin = work.range.segment_begin / width;
  const int64_t outer_count = (work.range.segment_end - 1) / width + 1 - outer_begin;
  const int64_t tiles = work.range.tile_end - work.range.tile_begin;
  return LaunchBlocks(groups * outer_count * tiles, [&](int64_t base, unsigned grid) {
    work.block_base = base;
    ColumnKernel<E><<<grid, dim3(columns, kColumnRows), 0, stream>>>(work, groups, outer_begin, outer_count);
  });
}

template <DType D>
cudaError_t LaunchRange(const Work& work, cudaStream_t stream) {
  using E = Element<D>;
  const Layout& layout = work.layout;
  const bool inner_reduced = layout.elements == 1 || layout.reduced[layout.rank - 1];
  const bool contiguous = inner_reduced && work.row_stride == 1;
  if (layout.elements <= (contiguous ? kTinyContiguous : kTinyStrided))
    return LaunchTinyWidth<E>(work, stream);
  if (!inner_reduced) return LaunchColumns<E>(work, stream);
  const auto addresses = reinterpret_cast<uintptr_t>(work.a) | reinterpret_cast<uintptr_t>(work.b);
  const bool aligned = contiguous && addresses % 16 == 0 &&
                       (layout.segments == 1 || layout.elements % (16 / sizeof(typename E::Type)) == 0);
  return aligned ? LaunchWarps<E, true>(work, stream) : LaunchWarps<E, false>(work, stream);
}

int64_t RowStride(const Layout& layout) {
  int64_t stride = 0;
  int axes = 0;
  for (int axis = 0; axis < layout.rank; ++axis) {
    if (!layout.reduced[axis]) continue;
    stride = layout.strides[axis];
    ++axes;
  }
  if (axes == 0) return 1;
  return axes == 1 ? stride : 0;
}

}  // namespace
}  // namespace cuda

cudaError_t CudaRange(const Plan& plan, const Range& range, const void* a, const void* b, double* tile_sums,
                      const gpu::Launcher& launcher) {
  if (range.items() == 0) return cudaSuccess;
  const cuda::Work work{.layout = plan.layout(),
                        .range = range,
                        .a = a,
                        .b = b,
                        .tile_sums = tile_sums,
                        .block_base = 0,
                        .row_stride = cuda::RowStride(plan.layout())};
  switch (plan.operand().dtype) {
    case DType::kI8:
      return cuda::LaunchRange<DType::kI8>(work, launcher.stream());
    case DType::kU8:
      return cuda::LaunchRange<DType::kU8>(work, launcher.stream());
    case DType::kI16:
      return cuda::LaunchRange<DType::kI16>(work, launcher.stream());
    case DType::kU16:
      return cuda::LaunchRange<DType::kU16>(work, launcher.stream());
    case DType::kI32:
      return cuda::LaunchRange<DType::kI32>(work, launcher.stream());
    case DType::kU32:
      return cuda::LaunchRange<DType::kU32>(work, launcher.stream());
    case DType::kI64:
      return cuda::LaunchRange<DType::kI64>(work, launcher.stream());
    case DType::kU64:
      return cuda::LaunchRange<DType::kU64>(work, launcher.stream());
    case DType::kF16:
      return cuda::LaunchRange<DType::kF16>(work, launcher.stream());
    case DType::kBF16:
      return cuda::LaunchRange<DType::kBF16>(work, launcher.stream());
    case DType::kF32:
      return cuda::LaunchRange<DType::kF32>(work, launcher.stream());
    case DType::kF64:
      return cuda::LaunchRange<DType::kF64>(work, launcher.stream());
    case DType::kBool:
    case DType::kC64:
    case DType::kC128:
      break;  // Plan::Make refuses them
  }
  return cudaErrorInvalidValue;
}

cudaError_t CudaFinish(const Plan& plan, double* tile_sums, double* result, const gpu::Launcher& launcher) {
  const Layout& layout = plan.layout();
  cuda::FinishWork work{.tile_sums = tile_sums,
                        .result = result,
                        .segments = layout.segments,
                        .tiles = layout.tiles,
                        .count = layout.tiles,
                        .stride = 1,
                        .block_base = 0,
                        .elements = static_cast<double>(layout.elements),
                        .output = plan.output()};
  if (work.count <= cuda::kFinishFew) {
    return cuda::LaunchBlocks(
        cuda::CeilDiv(work.segments, cuda::kFinishThreads), [&](int64_t base, unsigned grid) {
          work.block_base = base;
          cuda::FinishFewKernel<<<grid, cuda::kFinishThreads, 0, launcher.stream()>>>(work);
        });
  }
  for (;;) {
    const int64_t chunks = cuda::CeilDiv(work.count, cuda::kFinishChunk);
    const cudaError_t error = cuda::LaunchBlocks(work.segments * chunks, [&](int64_t base, unsigned grid) {
      work.block_base = base;
      cuda::FinishChunkKernel<<<grid, cuda::kFinishThreads, 0, launcher.stream()>>>(work);
    });
    if (error != cudaSuccess || chunks == 1) return error;
    work.count = chunks;
    work.stride *= cuda::kFinishChunk;
  }
}

}  // namespace tilewire::rmse
