// RMSE on the GPU: ranges, finishing, and both at once.
#include <algorithm>
#include <bit>

#include "kernels/rmse/cuda_finish.cuh"
#include "kernels/rmse/cuda_launch.cuh"
#include "kernels/rmse/launch_cuda.h"
#include "kernels/rmse/rmse_cuda.h"

namespace tilewire::rmse {
namespace cuda {
namespace {

/// The current device; one that every limit fits where there is none.
Device CurrentDevice() {
  int device = 0, processors = 0, shared = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess)
    return {.processors = 1, .shared = kUsualShared};
  return {.processors = processors, .shared = shared};
}

Ending EndingOf(const Plan& plan) {
  const int64_t n = plan.layout().elements;
  const auto elements = static_cast<double>(n);
  const bool power = std::has_single_bit(static_cast<uint64_t>(n));
  return {.elements = elements, .reciprocal = power ? 1 / elements : 0, .output = plan.output()};
}

cudaError_t Launch(const Choice& choice, const Work& work, const gpu::Launcher& launcher) {
  switch (choice.kernel) {
    case Kernel::kTiles:
      return LaunchTiles(choice, work, launcher);
    case Kernel::kGroups:
      return LaunchGroups(choice, work, launcher);
    case Kernel::kStaged:
      return LaunchStaged(choice, work, launcher);
    case Kernel::kRing:
      return LaunchRing(choice, work, launcher);
    case Kernel::kStream:
      return LaunchStream(choice, work, launcher);
    case Kernel::kWalk:
      return LaunchWalk(choice, work, launcher);
    case Kernel::kFinish:
      break;
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
    return LaunchFinish(launcher, FinishKernel<false>, CeilDiv(work.segments, kFinishFewThreads),
                        kFinishFewThreads, work);
  for (;;) {
    const int64_t chunks = CeilDiv(work.count, kFinishChunk);
    const int64_t most = std::min<int64_t>(work.count, kFinishChunk);
    const int threads = static_cast<int>(CeilDiv(CeilDiv(most, kFinishEach), 32)) * 32;
    const cudaError_t error =
        LaunchFinish(launcher, FinishKernel<true>, work.segments * chunks, threads, work);
    if (error != cudaSuccess || chunks == 1) return error;
    work.count = chunks;
    work.stride *= kFinishChunk;
  }
}

/// `result`: null where sums are to be kept, which is where the task is not whole (in a listing it may be
/// null anyway).
cudaError_t LaunchSums(const Plan& plan, const Task& task, const Choice& choice, const void* a, const void* b,
                       double* tile_sums, double* result, const gpu::Launcher& launcher) {
  const Work work{.layout = task.layout,
                  .range = task.range,
                  .a = static_cast<const char*>(a),
                  .b = static_cast<const char*>(b),
                  .tile_sums = tile_sums,
                  .result = choice.sums == 1 ? result : nullptr,
                  .sums_per_segment = choice.sums,
                  .ending = EndingOf(plan),
                  .flip = KindOf(plan.operand().dtype).flip,
                  .block_base = 0,
                  .batch = choice.batch,
                  .combine = choice.combine};
  return Launch(choice, work, launcher);
}

}  // namespace

Task TaskOf(const Plan& plan, const Range& range, bool whole, const void* a, const void* b) {
  return {.kind = KindOf(plan.operand().dtype).kind,
          .layout = plan.layout(),
          .range = range,
          .whole = whole,
          .a_at = static_cast<int>(reinterpret_cast<uintptr_t>(a) % 16),
          .b_at = static_cast<int>(reinterpret_cast<uintptr_t>(b) % 16),
          .device = CurrentDevice()};
}

cudaError_t LaunchWhole(const Plan& plan, const Choice& choice, const void* a, const void* b,
                        double* tile_sums, double* result, const gpu::Launcher& launcher) {
  const Task task = TaskOf(plan, plan.whole(), true, a, b);
  const cudaError_t error = LaunchSums(plan, task, choice, a, b, tile_sums, result, launcher);
  if (error != cudaSuccess || choice.sums == 1) return error;
  return Finish(plan, tile_sums, choice.sums, result, launcher);
}

}  // namespace cuda

cudaError_t CudaRange(const Plan& plan, const Range& range, const void* a, const void* b, double* tile_sums,
                      const gpu::Launcher& launcher) {
  if (range.items() == 0) return cudaSuccess;
  const cuda::Task task = cuda::TaskOf(plan, range, false, a, b);
  return cuda::LaunchSums(plan, task, cuda::Choose(task), a, b, tile_sums, nullptr, launcher);
}

cudaError_t CudaFinish(const Plan& plan, double* tile_sums, double* result, const gpu::Launcher& launcher) {
  return cuda::Finish(plan, tile_sums, plan.layout().tiles, result, launcher);
}

cudaError_t CudaWhole(const Plan& plan, const void* a, const void* b, double* tile_sums, double* result,
                      const gpu::Launcher& launcher) {
  const cuda::Choice choice = cuda::Choose(cuda::TaskOf(plan, plan.whole(), true, a, b));
  return cuda::LaunchWhole(plan, choice, a, b, tile_sums, result, launcher);
}

}  // namespace tilewire::rmse
