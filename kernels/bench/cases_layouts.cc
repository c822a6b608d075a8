// RMSE over every kind of layout: by the kernel that is chosen ("layouts"), and by each that could be
// ("choices"), which is what the constants of kernels/rmse/choose_*.cc are measured with.
#include "kernels/bench/layouts.h"
#include "kernels/bench/rmse_data.h"
#include "kernels/rmse/launch_cuda.h"

namespace tilewire::bench {
namespace {

using rmse::cuda::Choice;

/// One kernel in one shape, as far as it takes the task on the device that is there.
RmseKernel ByChoice(const rmse::Plan& plan, const Choice& choice) {
  RmseKernel kernel;
  kernel.implementation = rmse::cuda::ShapeName(choice);
  kernel.scratch_bytes = plan.scratch_bytes();
  kernel.run = [kind = choice.kernel, shape = choice.shape](const RmseData& data, void* scratch,
                                                            Stream stream) -> Status {
    const rmse::Plan& same = data.plan();
    const auto task = rmse::cuda::TaskOf(same, same.whole(), true, data.a(), data.b());
    for (const Choice& one : rmse::cuda::AllChoices(task)) {
      if (one.kernel != kind || one.shape != shape) continue;
      return FromCuda(rmse::cuda::LaunchWhole(same, one, data.a(), data.b(), static_cast<double*>(scratch),
                                              data.result(), stream),
                      "one kernel");
    }
    return Status(Code::kUnimplemented, "NO_SUCH_CHOICE", "the kernel refuses the layout here");
  };
  return kernel;
}

void AddChoices(const std::string& name, const RmseProblem& problem, std::vector<Case>* cases) {
  rmse::cuda::Task task{};
  task.kind = rmse::cuda::KindOf(problem.plan.operand().dtype).kind;
  task.layout = problem.plan.layout();
  task.range = problem.plan.whole();
  task.whole = true;
  for (const Choice& choice : rmse::cuda::AllChoices(task))
    cases->push_back(RmseCase("choices", name, problem, ByChoice(problem.plan, choice)));
}

}  // namespace

void AddLayoutCases(const CaseOptions& /*options*/, std::vector<Case>* cases) {
  for (const RmseLayout& layout : RmseLayouts()) {
    const RmseProblem problem = MakeRmseProblem(layout.dtype, layout.shape, layout.axes);
    cases->push_back(RmseCase("layouts", layout.name(), problem, OurRmseWhole(problem.plan)));
    AddChoices(layout.name(), problem, cases);
  }
}

}  // namespace tilewire::bench
