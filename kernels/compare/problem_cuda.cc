#include "kernels/compare/problem_cuda.h"

#include "kernels/compare/compare_cuda.h"
#include "kernels/compare/problem.h"

namespace tilewire::compare {
namespace {

cudaError_t Enqueue(const Problem& problem, Step step, const Buffers& buffers,
                    const gpu::Launcher& launcher) {
  const auto& compare = static_cast<const CompareProblem&>(problem);
  const rmse::Plan& geometry = compare.plan().geometry();
  const Kept kept = compare.plan().kept();
  const Values values = compare.ValuesIn(buffers);
  if (!step.is_finish()) {
    const Part part = compare.part(step.range);
    const std::byte *const a = buffers.operands[0], *const b = buffers.operands[1];
    if (geometry.layout().tiles == 1)
      return CudaSegments(*part.plan, part.range, kept, a, b, values.From(part.first), launcher);
    const cudaError_t error = CudaRange(*part.plan, part.range, kept, a, b, part.element,
                                        compare.PlanesIn(buffers, part.first), launcher);
    if (error != cudaSuccess || !compare.range_finishes()) return error;
  }
  return CudaFinish(geometry, kept, compare.PlanesIn(buffers, 0), values, launcher);
}

}  // namespace

constinit const CudaOperation kCuda = {&kDescriptor, Enqueue};

}  // namespace tilewire::compare
