#include "kernels/gaussian/problem_cuda.h"

#include "kernels/gaussian/gaussian_cuda.h"
#include "kernels/gaussian/problem.h"

namespace tilewire::gaussian {
namespace {

cudaError_t Enqueue(const Problem& problem, Step step, const Buffers& buffers,
                    const gpu::Launcher& launcher) {
  const Part part = static_cast<const GaussianProblem&>(problem).part(step.range);
  return CudaRange(*part.plan, part.range, buffers.operands[0], buffers.results[0], launcher);
}

}  // namespace

constinit const CudaOperation kCuda = {&kDescriptor, Enqueue};

}  // namespace tilewire::gaussian
