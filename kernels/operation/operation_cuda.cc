#include "kernels/operation/operation_cuda.h"

#include "kernels/operation/copy.h"

namespace tilewire {
namespace {

cudaError_t EnqueueCopy(const Problem& problem, const Buffers& buffers, const gpu::Launcher& launcher) {
  if (launcher.lists()) return cudaSuccess;  // the driver's own copy
  return cudaMemcpyAsync(buffers.results[0], buffers.operands[0], static_cast<size_t>(problem.result_bytes()),
                         cudaMemcpyDeviceToDevice, launcher.stream());
}

}  // namespace

cudaError_t EnqueueStep(const Problem& problem, Step step, const Buffers& buffers,
                        const gpu::Launcher& launcher) {
  for (const CudaOperation* const operation : CudaOperations())
    if (operation->descriptor == problem.descriptor())
      return operation->enqueue(problem, step, buffers, launcher);
  if (problem.descriptor() == &kCopyDescriptor) return EnqueueCopy(problem, buffers, launcher);
  return cudaErrorNotSupported;
}

}  // namespace tilewire
