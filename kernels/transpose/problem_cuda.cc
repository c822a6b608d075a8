#include "kernels/transpose/problem_cuda.h"

#include "kernels/transpose/problem.h"
#include "kernels/transpose/transpose_cuda.h"

namespace tilewire::transpose {
namespace {

cudaError_t Enqueue(const Problem& problem, Step step, const Buffers& buffers,
                    const gpu::Launcher& launcher) {
  const auto& transpose = static_cast<const TransposeProblem&>(problem);
  return CudaRange(transpose.plan(), transpose.band(step.range), buffers.operands[0], buffers.results[0],
                   launcher);
}

}  // namespace

constinit const CudaOperation kCuda = {&kDescriptor, Enqueue};

}  // namespace tilewire::transpose
