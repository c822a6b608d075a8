#include "kernels/rmse/problem_cuda.h"

#include "kernels/rmse/problem.h"
#include "kernels/rmse/rmse_cuda.h"

namespace tilewire::rmse {
namespace {

cudaError_t Enqueue(const Problem& problem, Step step, const Buffers& buffers,
                    const gpu::Launcher& launcher) {
  const auto& rmse = static_cast<const RmseProblem&>(problem);
  double *const sums = RmseProblem::TileSums(buffers), *const values = RmseProblem::Values(buffers);
  const std::byte *const a = buffers.operands[0], *const b = buffers.operands[1];
  if (step.is_finish()) return CudaFinish(rmse.plan(), sums, values, launcher);
  if (rmse.range_finishes()) return CudaWhole(rmse.plan(), a, b, sums, values, launcher);
  const Sums wanted = rmse.sums(step.range);
  return CudaRange(*wanted.plan, wanted.range, a, b, sums + wanted.first, launcher);
}

}  // namespace

constinit const CudaOperation kCuda = {&kDescriptor, Enqueue};

}  // namespace tilewire::rmse
